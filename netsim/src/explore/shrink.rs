//! Makes a failing schedule as short as it gets, with the same complaint.

use crate::scenario::Scenario;
use crate::step::Step;
use std::collections::BTreeSet;
use std::time::Duration;

/// Shrinks a scenario for as long as `fails` says that what is left still fails, by at most so many tries.
///
/// Things are left out by halves, quarters and so on down to single ones: clients, brokers with all that hangs on them, steps,
/// links; and then once more, as one makes room for others. What makes the network whole at the end and waits for it to
/// settle stays, or what is checked then would be checked too early.
pub(crate) fn shrink(scenario: Scenario, tries: usize, fails: impl Fn(&Scenario) -> bool) -> Scenario {
    let mut shrinking = Shrinking { scenario, tries, fails };
    let mut before = usize::MAX;
    while shrinking.tries > 0 && shrinking.size() < before {
        before = shrinking.size();
        shrinking.leave_out(steps, without_steps);
        shrinking.leave_out(brokers, without_brokers);
        shrinking.leave_out(clients, without_clients);
        shrinking.leave_out(links, without_links);
        shrinking.leave_out(wishes, without_wishes);
    }
    shrinking.scenario
}

struct Shrinking<F> {
    scenario: Scenario,
    tries: usize,
    fails: F,
}

impl<F: Fn(&Scenario) -> bool> Shrinking<F> {
    fn size(&self) -> usize {
        let scenario = &self.scenario;
        let network = scenario.topology.names.len() + scenario.leaf_plans.len() + links(scenario).len();
        scenario.steps.len() + scenario.clients.len() + network + wishes(scenario).len()
    }

    /// Leaves out things of one kind: first half of them at a time, in the end one at a time.
    fn leave_out<T: Clone>(&mut self, list: fn(&Scenario) -> Vec<T>, without: fn(&Scenario, &[T]) -> Scenario) {
        let mut chunk = list(&self.scenario).len().div_ceil(2);
        while chunk > 0 {
            // From the end: what comes later depends on what came before.
            let mut end = usize::MAX;
            while end > 0 && self.tries > 0 {
                let things = list(&self.scenario);
                // What was left out last may have taken others with it.
                end = end.min(things.len());
                let start = end.saturating_sub(chunk);
                let smaller = without(&self.scenario, &things[start..end]);
                self.tries -= 1;
                if (self.fails)(&smaller) {
                    self.scenario = smaller;
                }
                end = start;
            }
            chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
        }
    }
}

/// From where on a schedule only makes whole, waits and checks.
fn tail(scenario: &Scenario) -> usize {
    scenario.steps.iter().rposition(|step| *step == Step::HealAll).unwrap_or(scenario.steps.len())
}

/// Whether a step in between makes whole what must be so for the next, which settles.
fn is_for_settling(steps: &[Step], place: usize) -> bool {
    match steps[place] {
        Step::HealAll | Step::RestartAll => {
            let rest = steps[place + 1..].iter();
            let mut rest = rest.skip_while(|step| matches!(step, Step::HealAll | Step::RestartAll));
            matches!(rest.next(), Some(Step::Settle { .. }))
        }
        _ => false,
    }
}

/// Places of the steps that may be left out: the last check too, and publications at the end.
fn steps(scenario: &Scenario) -> Vec<usize> {
    let tail = tail(scenario);
    let may = |&place: &usize| match place < tail {
        true => !is_for_settling(&scenario.steps, place),
        false => matches!(scenario.steps[place], Step::Publish { .. }),
    };
    let mut places: Vec<usize> = (0..scenario.steps.len()).filter(may).collect();
    let last = scenario.steps.len().saturating_sub(1);
    if last > tail + 3 && !places.contains(&last) {
        places.push(last);
    }
    places
}

fn without_steps(scenario: &Scenario, places: &[usize]) -> Scenario {
    let mut smaller = scenario.clone();
    let mut place = 0;
    smaller.steps.retain(|_| {
        place += 1;
        !places.contains(&(place - 1))
    });
    merge_waits(&mut smaller.steps);
    smaller
}

/// Two waits in a row are one.
fn merge_waits(steps: &mut Vec<Step>) {
    let mut merged: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps.drain(..) {
        if let (Some(Step::Wait { ms, us }), Step::Wait { ms: more_ms, us: more_us }) = (merged.last_mut(), &step) {
            let micros = Duration::from_millis(*ms + more_ms) + Duration::from_micros(*us + more_us);
            (*ms, *us) = (micros.as_millis() as u64, u64::from(micros.subsec_micros() % 1_000));
        } else {
            merged.push(step);
        }
    }
    *steps = merged;
}

fn clients(scenario: &Scenario) -> Vec<String> {
    scenario.clients.iter().map(|client| client.name.clone()).collect()
}

fn without_clients(scenario: &Scenario, names: &[String]) -> Scenario {
    let mut smaller = scenario.clone();
    let gone: BTreeSet<&String> = names.iter().collect();
    smaller.clients.retain(|client| !gone.contains(&client.name));
    smaller.steps.retain(|step| step.client().is_none_or(|client| !gone.contains(client)));
    merge_waits(&mut smaller.steps);
    smaller
}

fn brokers(scenario: &Scenario) -> Vec<String> {
    scenario.topology.names.iter().chain(scenario.leaf_plans.iter().map(|leaf| &leaf.name)).cloned().collect()
}

/// Without some brokers, their links and clients, and all steps about these. Leaves with nothing to hang off go too.
fn without_brokers(scenario: &Scenario, names: &[String]) -> Scenario {
    let mut gone: BTreeSet<String> = names.iter().cloned().collect();
    let mut smaller = scenario.clone();
    loop {
        for leaf in &mut smaller.leaf_plans {
            leaf.uplinks.retain(|uplink| !gone.contains(uplink));
        }
        let hangs = |leaf: &&crate::LeafPlan| !gone.contains(&leaf.name) && leaf.uplinks.is_empty();
        let Some(leaf) = smaller.leaf_plans.iter().find(hangs) else { break };
        gone.insert(leaf.name.clone());
    }
    smaller.leaf_plans.retain(|leaf| !gone.contains(&leaf.name));
    smaller.topology.names.retain(|name| !gone.contains(name));
    smaller.topology.brokers = smaller.topology.names.len();
    smaller.topology.links.retain(|ends| !ends.iter().any(|end| gone.contains(end)));
    smaller.steps.retain(|step| !step.brokers().iter().any(|broker| gone.contains(*broker)));
    for step in &mut smaller.steps {
        if let Step::Partition { groups } = step {
            groups.iter_mut().for_each(|group| group.retain(|name| !gone.contains(name)));
        }
    }
    let clients = smaller.clients.iter().filter(|client| gone.contains(&client.broker));
    let clients: Vec<String> = clients.map(|client| client.name.clone()).collect();
    without_clients(&smaller, &clients)
}

fn links(scenario: &Scenario) -> Vec<[String; 2]> {
    let uplinks = scenario.leaf_plans.iter().flat_map(|leaf| {
        let more = if leaf.uplinks.len() > 1 { &leaf.uplinks[..] } else { &[] };
        more.iter().map(|uplink| [leaf.name.clone(), uplink.clone()])
    });
    scenario.topology.links.iter().cloned().chain(uplinks).collect()
}

fn without_links(scenario: &Scenario, gone: &[[String; 2]]) -> Scenario {
    let mut smaller = scenario.clone();
    let is_gone =
        |ends: &[String; 2]| gone.iter().any(|link| link == ends || (link[0] == ends[1] && link[1] == ends[0]));
    smaller.topology.links.retain(|ends| !is_gone(ends));
    for leaf in &mut smaller.leaf_plans {
        let name = leaf.name.clone();
        leaf.uplinks.retain(|uplink| !is_gone(&[name.clone(), uplink.clone()]));
    }
    smaller.steps.retain(|step| step.link().is_none_or(|link| !is_gone(link)));
    merge_waits(&mut smaller.steps);
    smaller
}

/// What clients want from the beginning: their numbers, whether it is an advertisement, and its name.
fn wishes(scenario: &Scenario) -> Vec<(usize, bool, String)> {
    let of_client = |(number, client): (usize, &crate::ClientPlan)| {
        let subscriptions = client.subscribe.keys().map(move |name| (number, false, name.clone()));
        subscriptions.chain(client.advertise.keys().map(move |name| (number, true, name.clone()))).collect::<Vec<_>>()
    };
    scenario.clients.iter().enumerate().flat_map(of_client).collect()
}

fn without_wishes(scenario: &Scenario, gone: &[(usize, bool, String)]) -> Scenario {
    let mut smaller = scenario.clone();
    for (number, is_advertisement, name) in gone {
        let client = &mut smaller.clients[*number];
        let wishes = if *is_advertisement { &mut client.advertise } else { &mut client.subscribe };
        wishes.remove(name);
    }
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::schedule::schedule;

    #[test]
    fn only_what_is_needed_is_left() {
        // It fails as long as this broker crashes while it has a client, whatever else there is.
        let drawn = schedule(3, 12).expect("a good size");
        let broker = drawn.clients[0].broker.clone();
        let crash = Step::Crash { broker: broker.clone() };
        let mut scenario = drawn;
        scenario.steps.insert(20, crash.clone());
        let small = shrink(scenario, 2_000, |scenario| {
            scenario.steps.contains(&crash) && scenario.clients.iter().any(|client| client.broker == broker)
        });
        assert_eq!(
            (small.topology.names.len(), small.clients.len(), small.topology.links.len()),
            (1, 1, 0),
            "{small:?}"
        );
        assert!(small.clients[0].subscribe.is_empty() && small.clients[0].advertise.is_empty());
        assert_eq!(small.steps[tail(&small) - 1], crash);
        assert_eq!(tail(&small), 1);
    }
}
