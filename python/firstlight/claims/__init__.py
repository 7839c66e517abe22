"""Claims of the kind ``measured``: any metrics at any points of any curves, and what the text says of them.

It is the kind for experiments whose curves are controllers and not time scales. Its form in ``claim.toml``,
beside what every claim has (:mod:`firstlight.claims.claim`):

``[[axes]]``
    As elsewhere. ``repeat = true``: the axis only repeats, as ``keys = ["seed"]`` does; rows are means over
    it with a 95 % interval. ``least = {metric = "queue_utilization_pct", reaches = 99.9}``: at each point
    only the smallest value of this axis counts whose ``metric`` reaches that much on average over the
    repetitions. That value is a metric itself, called as the axis; where none reaches it there is no
    number.

``[[curves]]``
    ``name``; ``set``: keys that it sets; ``cases = [{at = {rate_gbps = 1}, set = {...}}]``: keys that it
    sets at some values of axes; ``only = {rate_gbps = [10]}``: where it is run at all. ``time_scale`` is 1
    unless given.

``[[measures]]``
    ``metric`` of the summary or of :mod:`firstlight.claims.measures`, ``figure`` (``"12a"``), ``label`` and
    ``unit``: a row for every point and curve (or those of ``curves = ["DX"]``). The paper's number beside
    it is that of ``expected.csv``, whose columns are axes, ``curve`` and metrics.

``[[facts]]``
    A number that the text states of a measure: ``metric``, ``paper``, ``quote``, ``curve``; ``by =
    "DCTCP"``: that curve's value divided by this one's; ``at = {senders = 10}``: of these points only;
    ``over``: ``mean`` (without it), ``least`` or ``largest`` of the points that are left; ``figure`` and
    ``unit`` if not the measure's.

``[options]``
    ``table = "curves"``: its README has a table for each measure, a row for each point and a column for each
    curve, and not a row for each number.

``[[figures]]``
    ``name`` (``fig12a``), ``caption`` and ``kind``. ``lines``: ``metrics``, a panel each, against the first
    axis. ``cdf``: ``table`` and ``column`` (and ``weight``, a column of counts), a panel for each point,
    ``label``: of the horizontal axis; ``where = {workload = "big"}``: of these rows; ``divide = 1000``: us
    as ms; ``logarithmic = true``. ``bars``: ``metrics``, a panel each, by curve, of the first point.
    ``heat_map``: the first of ``metrics`` by curve and first axis, a panel for each value of the second;
    ``divide``, and ``label`` above it. ``throughput``: flows over time, a panel for each curve, of the first
    point, or the first ``at`` some values. ``overload``: all flows together and the first watched queue over
    time, a column for each point; ``curves``: of these. ``ratios``: the first of ``metrics``, by the facts
    that have ``by``, at each point beside the paper's numbers; ``label``. ``fct_groups``: completion times by
    flow size. ``ladder``: measured delay and queue over time. ``chain_deviation``, ``chain_gaps``,
    ``chain_rtts``: the measurement chain's.
"""
