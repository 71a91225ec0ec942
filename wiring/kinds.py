"""The setting of a run, whose games may be of several kinds."""

from __future__ import annotations

from args import Args, UserError
from wiring.setting import Setting, setting_of


def setting_of_run(args: Args) -> Setting:
    """As `setting_of`; games of several kinds get a shard of the replay each, or more, and a trunk to share.

    Raises EnvError, and UserError where --shards does not fit.
    """
    setting, count = setting_of(args), len(args.games)
    if not setting.games:
        return setting
    if args.shards > 1 and args.shards % count:
        raise UserError(
            f"Games that differ in frames or actions have shards of their own: give --shards {count}, or a"
            f" multiple of it, not {args.shards}."
        )
    filled = {
        "shards": args.shards if args.shards > 1 else count,
        "trunk_size": args.trunk_size or args.hidden_size,
    }

    def with_both(one: Setting) -> Setting:
        return one._replace(args=one.args.model_copy(update=filled))

    return with_both(setting)._replace(games=tuple(map(with_both, setting.games)))
