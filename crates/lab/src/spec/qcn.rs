//! The keys of QCN, and what they say.

use super::keys::{Key, Kind};
use super::registry::{POSITIVE, key};
use super::values::Values;
use firstlight_net::qcn::QcnConfig;

const AMOUNT: Kind = Kind::Size { least: 1, most: 1 << 40 };

/// The keys of `[qcn]`.
pub(super) fn keys() -> Vec<Key> {
    let config = QcnConfig::default();
    let number = |value: f64| format!("{value:?}");
    vec![
        key("qcn.qeq", AMOUNT, "Q_eq: the queue that switches aim at, in bytes not yet sent").or(config.set_point),
        key("qcn.w", Kind::Number { least: 0.0, most: 100.0 }, "w: how much a queue's growth counts beside its length")
            .or(number(config.weight)),
        key(
            "qcn.gd",
            Kind::Number { least: 0.001, most: 0.999 },
            "G_d: the largest feedback takes this share of a flow's rate",
        )
        .or(number(config.gain)),
        key(
            "qcn.sample",
            AMOUNT,
            "A queue is sampled after so many bytes, up to eight times sooner while feedback is high",
        )
        .or(config.sample),
        key("qcn.byte_limit", AMOUNT, "Bytes of a cycle of a limited flow's byte counter").or(config.byte_limit),
        key("qcn.timer", POSITIVE, "A cycle of its timer").or(config.timer),
        key(
            "qcn.fast_recovery",
            Kind::Count { least: 1, most: 1000, of: "cycles" },
            "Cycles of either in which the rate returns half the way to what it was; later ones are half as long",
        )
        .or(config.fast_recovery),
        key("qcn.active_increase", Kind::Rate, "What each cycle adds then to the rate that is aimed at")
            .or(config.active_increase),
        key(
            "qcn.hyper_increase",
            Kind::Rate,
            "The same when both have counted more cycles than that, times how many more",
        )
        .or(config.hyper_increase),
        key("qcn.min_rate", Kind::Rate, "No flow is made slower").or(config.min_rate),
        key(
            "qcn.min_decrease",
            Kind::Number { least: 0.0, most: 1.0 },
            "No feedback makes a rate less than this part of what it was",
        )
        .or(number(config.min_decrease)),
        key(
            "qcn.extra_fast_recovery",
            Kind::Flag,
            "Feedback that comes before the byte counter has ended a cycle leaves the rate that is aimed at",
        )
        .or(config.extra_fast_recovery),
    ]
}

/// What the table says; `None` without it.
pub(super) fn read(values: &Values) -> Option<QcnConfig> {
    values.tables.contains_key("qcn").then(|| QcnConfig {
        set_point: values.size("qcn.qeq"),
        weight: values.number("qcn.w"),
        gain: values.number("qcn.gd"),
        sample: values.size("qcn.sample"),
        byte_limit: values.size("qcn.byte_limit"),
        timer: values.span("qcn.timer"),
        fast_recovery: values.packets("qcn.fast_recovery"),
        active_increase: values.rate("qcn.active_increase"),
        hyper_increase: values.rate("qcn.hyper_increase"),
        min_rate: values.rate("qcn.min_rate"),
        min_decrease: values.number("qcn.min_decrease"),
        extra_fast_recovery: values.flag("qcn.extra_fast_recovery"),
    })
}
