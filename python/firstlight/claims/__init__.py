"""Claims: what a paper says, the experiment that tests it, and the paper's numbers beside ours.

Each folder of ``experiments/<paper>/`` that has a ``claim.toml`` is one claim. Beside it lie
``experiment.toml``, and the numbers to compare with as CSV files whose first lines (``#``) say where they
come from: ``expected.csv`` with the paper's, ``linux.csv`` with what Linux stacks gave before. Their columns
are axes, ``curve``, ``time_scale`` and metrics; a column that is not there stands for all.
``experiments/<paper>/paper.toml`` says which paper it is; ``paper = "talk.toml"`` names another file there.

A claim is run at every *point*, a combination of its axes' values, for every *curve*, on every *platform*: a
kind of hosts at a time scale. The keys of ``claim.toml`` are those of the dataclasses in
:mod:`firstlight.claims.form`:

``figure``, ``title``, ``section``, ``claim`` Where in the paper the claim stands, and what it says. ``hosts =
["simulated"]``, ``time_scales = [20, 1]`` The platforms; without these keys both kinds of hosts, in exact
time. With several time scales its table has a column for each platform. ``[quick]``, ``[full]``, ``[linux]``
Keys of the experiment that are set in the quick set, in the full set, and on Linux hosts. ``[[axes]]``
:class:`~firstlight.claims.form.Axis`. ``repeat = true``: the axis only repeats, as ``keys = ["seed"]`` does;
rows are means over it with a 95 % interval. ``least = {metric = "queue_utilization_pct", reaches = 99.9}``:
at each point only the smallest value counts whose metric reaches that much on average over repetitions. That
value is a metric itself, named as the axis; where no value reaches it there is no number. ``[[curves]]``
:class:`~firstlight.claims.form.Curve`. ``cases = [{at = {rate_gbps = 1}, set = {...}}]``: keys that it sets
at some values of axes; ``only = {rate_gbps = [10]}``: where it is run. Without this table there is one curve.
``[[measures]]`` :class:`~firstlight.claims.form.Measure`: a row for every point of every curve.
``[[statements]]`` :class:`~firstlight.claims.statement.Statement`: a quoted sentence and its ``checks``
(:class:`~firstlight.claims.statement.StatedCheck`). The number of a check stands in the paper's column at its
points; a ratio, or a number over several points, has a row of its own. Instead of statements
``not_comparable`` says why there is nothing to judge. A statement's ``cause`` says why it does not hold, and
names the curve, the claim or the command that shows it. ``[[figures]]``
:class:`~firstlight.claims.form.Plot`; the kinds are described in :mod:`firstlight.figures.gallery`.
``[options]`` :class:`~firstlight.claims.form.Options`. ``table = "curves"``: the README has a table for
each measure, with a row for each point and a column for each curve.
"""
