"""Networks: torsos, noisy layers, dueling heads and one network per agent."""
