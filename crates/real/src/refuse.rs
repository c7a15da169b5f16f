//! What only virtual time can do.

use enroute_netsim::{Scenario, Step, Times};

/// The first thing in a scenario that real brokers cannot do, in words; `None` if there is none.
pub(crate) fn only_virtual(scenario: &Scenario) -> Option<String> {
    let leaves = scenario.leaves.is_some() || !scenario.leaf_plans.is_empty();
    let times = Times { keep_alive_ms: scenario.times.keep_alive_ms, ..Times::default() };
    let settings = [
        (leaves, "leaves"),
        (!scenario.clones.is_empty(), "clones"),
        (scenario.times != times, "times other than keep_alive_ms"),
        (scenario.settled, "settled"),
        (scenario.publish_on_answers, "publish_on_answers"),
        (!scenario.audiences.is_empty(), "audience"),
        (scenario.publishers > 0, "publishers"),
        (scenario.links.self_dials, "links.self_dials"),
        (scenario.links.cost != [1, 1], "links.cost"),
    ];
    let setting = settings.into_iter().find_map(|(is, name)| is.then(|| name.to_owned()));
    setting.or_else(|| {
        let mut steps = scenario.steps.iter().enumerate().filter(|(_, step)| !can(step));
        steps.next().map(|(number, step)| format!("step {number}, {}", name(step)))
    })
}

fn can(step: &Step) -> bool {
    match step {
        Step::Settle { .. }
        | Step::Wait { .. }
        | Step::Subscribe { .. }
        | Step::Unsubscribe { .. }
        | Step::UnsubscribeAll
        | Step::Advertise { .. }
        | Step::Unadvertise { .. }
        | Step::Disconnect { .. }
        | Step::Connect { .. }
        | Step::ConnectAll
        | Step::Publish { .. }
        | Step::Replay { .. }
        | Step::Cut { .. }
        | Step::Heal { .. }
        | Step::HealAll
        | Step::Partition { .. }
        | Step::Crash { .. }
        | Step::Restart { .. }
        | Step::RestartAll
        | Step::Expect { .. } => true,
        Step::StallClient { .. }
        | Step::DialAgain { .. }
        | Step::Slow { .. }
        | Step::Stall { .. }
        | Step::Flap { .. }
        | Step::Chaos(_)
        | Step::ExpectInUse { .. }
        | Step::CheckFresh
        | Step::CheckEmpty => false,
    }
}

/// A step's name, as the file has it.
pub(crate) fn name(step: &Step) -> String {
    let name = serde_json::to_value(step).ok().and_then(|step| Some(step.get("do")?.as_str()?.to_owned()));
    name.unwrap_or_else(|| format!("{step:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_named() {
        let refused = |more: &str| {
            let text = format!("topology = {{ shape = 'line', brokers = 2 }}\n{more}");
            only_virtual(&Scenario::parse(&text).expect("a scenario"))
        };
        assert_eq!(refused("times = { keep_alive_ms = 200 }\n[[step]]\ndo = 'settle'"), None);
        assert_eq!(refused("times = { grace_ms = 9 }\nstep = []").as_deref(), Some("times other than keep_alive_ms"));
        assert_eq!(refused("settled = true\nstep = []").as_deref(), Some("settled"));
        assert_eq!(refused("leaves = { count = 1 }\nstep = []").as_deref(), Some("leaves"));
        let steps = "[[step]]\ndo = 'settle'\n[[step]]\ndo = 'check-fresh'";
        assert_eq!(refused(steps).as_deref(), Some("step 1, check-fresh"));
        assert_eq!(refused("[[step]]\ndo = 'chaos'\nactions = 5").as_deref(), Some("step 0, chaos"));
    }
}
