//! The two experiments of the PPSMTBOAD paper.

use super::plot::Scale;
use super::{Experiment, Figure};
use crate::random::Random;
use crate::report::EngineReport;
use crate::workload::Input;
use crate::workload::predicates::Predicates;

/// The paper's naive algorithm is counting; its own is walked by one thread here, as all others are.
const ENGINES: &[(&str, &str)] = &[
    ("counting", "#e69f00"),
    ("carzaniga", "#009e73"),
    ("ppsmtboad", "#cc79a7"),
    ("enindex", "#0072b2"),
    ("enroute", "#d55e00"),
];

/// The names of the paper's second experiment.
const NAMES: usize = 600;

const BY_ATTRIBUTES: Figure = Figure {
    title: "PPSMTBOAD, experiment 1: matching time by the number of attributes",
    text: "5,000 subscriptions of 5 to 15 predicates; the paper does not say how many attributes an event has: 25.\n\
           `counting` is what the paper calls naive; `enindex` is the paper's, with each predicate's truth found once.",
    ordinate: "microseconds an event",
    file: "ppsmtboad-1.svg",
    of: EngineReport::microseconds,
};

const BY_SUBSCRIPTIONS: Figure = Figure {
    title: "PPSMTBOAD, experiment 2: matching time by the number of subscriptions",
    text: "600 attributes, events of 25, subscriptions of 5 to 20 predicates.",
    ordinate: "microseconds an event",
    file: "ppsmtboad-2.svg",
    of: EngineReport::microseconds,
};

pub(super) fn experiments(quick: bool) -> Vec<Experiment> {
    let (runs, attributes, subscriptions, many): (u64, &[usize], usize, &[usize]) = if quick {
        (2, &[50, 250, 500], 500, &[300, 1_000])
    } else {
        let attributes = &[50, 100, 150, 200, 250, 300, 350, 400, 450, 500];
        (15, attributes, 5_000, &[1_000, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000])
    };
    vec![
        Experiment {
            engines: ENGINES,
            abscissa: "attributes",
            scale: Scale::Linear,
            points: attributes.iter().map(|count| (*count, subscriptions)).collect(),
            input: |attributes, seed| input(attributes, 15, seed),
            runs,
            figures: &[BY_ATTRIBUTES],
        },
        Experiment {
            engines: ENGINES,
            abscissa: "subscriptions",
            scale: Scale::Logarithmic,
            points: many.iter().map(|count| (*count, *count)).collect(),
            input: |_, seed| input(NAMES, 20, seed),
            runs,
            figures: &[BY_SUBSCRIPTIONS],
        },
    ]
}

fn input(attributes: usize, most_predicates: usize, seed: u64) -> Input {
    let mut random = Random::new(seed, 0);
    Input::new(Box::new(Predicates::new(attributes, 5, most_predicates, &mut random)), seed)
}
