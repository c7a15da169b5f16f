//! The same workload under three schemes: flooding, one shared tree with covering hop by hop, and the brokers' own.
//!
//! A scenario runs as always; what its clients ask is then done once more by the other schemes, over the same links, with the
//! same faults, found at the same times. What the network does before it has first settled, they do over the links of then.

mod meter;
mod replay;
mod siena;

use crate::report::{Settle, table};
use crate::run::Run;
use crate::scenario::{Scenario, ScenarioError};
use crate::workload::{Asked, Workload};
use meter::Meter;
use replay::Replay;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The schemes side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Of the scenario.
    pub name: String,
    /// Everything random came from this.
    pub seed: u64,
    /// How many there are.
    pub brokers: usize,
    /// How many were up when the network had first settled.
    pub links: usize,
    /// Events published.
    pub events: usize,
    /// Flooding, the shared tree, and the brokers' own.
    pub schemes: [Scheme; 3],
    /// What is wrong with the run of the brokers' own, in words.
    pub complaints: Vec<String>,
}

/// What one scheme made of the workload.
#[derive(Clone, Debug, Serialize)]
pub struct Scheme {
    /// Its name.
    pub name: &'static str,
    /// Events handed to clients.
    pub deliveries: u64,
    /// Times that an event came over a link; what went down with one is not among them.
    pub crossings: u64,
    /// Their bytes, as frames.
    pub event_bytes: u64,
    /// Of these, bytes on links that led to nobody who wanted the event and got it.
    pub useless_bytes: u64,
    /// Mean over all events and brokers that wanted and got them: the cost of the path taken, by that of the shortest while
    /// all links were whole.
    pub stretch: f64,
    /// Bytes of control messages, as frames. Of the brokers' own this is all there is, of the tree only what covering tells.
    pub control_bytes: u64,
    /// Events on the link that carried most.
    pub busiest: u64,
    /// What was lost, for each time that the network settled.
    pub losses: Vec<Loss>,
}

/// What was lost until a step in which the network settled, since the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The place of the step, from 0.
    pub step: usize,
    /// Events that clients had to get: with the brokers' own scheme not before their subscriptions are in force.
    pub expected: u64,
    /// Of these, those that they did not get because of a fault.
    pub lost: u64,
}

/// Runs a scenario, and its workload under the other schemes.
///
/// # Errors
/// What is wrong with the scenario.
pub fn compare(scenario: Scenario, seed: u64) -> Result<Comparison, ScenarioError> {
    let mut run = Run::new(scenario, seed)?;
    run.world_mut().record_workload();
    let (report, world) = run.run_and_keep()?;
    let Workload { asked, trips, .. } = world.take_workload();
    let first = asked.iter().find_map(|asked| match asked {
        Asked::Links(links) => Some(links.graph.clone()),
        Asked::Subscribe { .. } | Asked::Unsubscribe { .. } | Asked::Publish { .. } | Asked::Settled { .. } => None,
    });
    let (graph, homes) = (first.unwrap_or_else(|| world.whole_graph()), world.homes());
    let mut own = Meter::new(&graph);
    trips.values().for_each(|trip| own.take(trip));
    let mut replay = Replay::new(&homes, &graph);
    asked.into_iter().for_each(|asked| replay.take(asked));
    let tree_bytes = replay.control_bytes();
    let control = report.control.values().map(|count| count.bytes).sum();
    let losses = report.settles.iter().map(|&Settle { step, expected, lost, .. }| Loss { step, expected, lost });
    Ok(Comparison {
        name: report.name,
        seed,
        brokers: report.brokers,
        links: graph.neighbours.iter().map(BTreeMap::len).sum::<usize>() / 2,
        events: replay.events,
        schemes: [
            replay.flooding.scheme("flooding", 0),
            replay.tree.scheme("one shared tree, covering", tree_bytes),
            Scheme { losses: losses.collect(), ..own.scheme("enroute", control) },
        ],
        complaints: report.complaints,
    })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { name, seed, brokers, links, events, .. } = self;
        writeln!(f, "{name}: {brokers} brokers, {links} links, seed {seed}; {events} events\n")?;
        let head = [
            "scheme",
            "deliveries",
            "crossings",
            "an event",
            "event bytes",
            "useless bytes",
            "stretch",
            "control bytes",
            "busiest link",
        ];
        let cells = |scheme: &Scheme| {
            vec![
                scheme.name.to_owned(),
                scheme.deliveries.to_string(),
                scheme.crossings.to_string(),
                format!("{:.2}", scheme.crossings as f64 / (*events).max(1) as f64),
                scheme.event_bytes.to_string(),
                scheme.useless_bytes.to_string(),
                format!("{:.2}", scheme.stretch),
                scheme.control_bytes.to_string(),
                scheme.busiest.to_string(),
            ]
        };
        let lines: Vec<Vec<String>> = self.schemes.iter().map(cells).collect();
        table(f, &head, &lines)?;
        self.write_losses(f)?;
        self.complaints.iter().try_for_each(|complaint| writeln!(f, "  wrong: {complaint}"))
    }
}

impl Comparison {
    /// A line for each time that the network settled and something had been lost.
    fn write_losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.schemes.each_ref().map(|scheme| &scheme.losses);
        let settled = (0..columns[0].len()).map(|place| columns.map(|losses| losses[place]));
        let share = |loss: &Loss| match loss.lost {
            0 => "0".to_owned(),
            lost => format!("{lost} of {} ({:.2} %)", loss.expected, 100.0 * lost as f64 / loss.expected as f64),
        };
        let cells = |losses: [Loss; 3]| {
            let step = losses[0].step.to_string();
            std::iter::once(step).chain(losses.iter().map(share)).collect::<Vec<String>>()
        };
        let lines: Vec<_> = settled.filter(|losses| losses.iter().any(|loss| loss.lost > 0)).map(cells).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let head: Vec<&str> = std::iter::once("lost until step").chain(self.schemes.iter().map(|it| it.name)).collect();
        writeln!(f)?;
        table(f, &head, &lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_schemes_deliver_the_same_and_the_tree_goes_round() {
        let text = "
            topology = { shape = 'ring', brokers = 7 }
            clients_per_broker = 1
            subscriptions_per_client = 2
            [[step]]
            do = 'settle'
            [[step]]
            do = 'publish'
            count = 200
            [[step]]
            do = 'settle'
            [[step]]
            do = 'cut'
            link = ['b00', 'b01']";
        let compared = compare(Scenario::parse(text).expect("a scenario"), 3).expect("a good scenario");
        let [flooding, tree, own] = &compared.schemes;
        assert_eq!((compared.events, &compared.complaints[..]), (200, &[] as &[String]));
        assert_eq!([flooding.deliveries, tree.deliveries], [own.deliveries; 2], "{compared}");
        // On a ring of seven, each broker but the one that came first sends to one neighbour, the last two to each other.
        assert_eq!(flooding.crossings, 200 * 8);
        assert!(own.crossings < tree.crossings && tree.crossings < flooding.crossings, "{compared}");
        assert_eq!((own.useless_bytes, tree.useless_bytes), (0, 0), "{compared}");
        assert!(flooding.useless_bytes > 0 && own.stretch == 1.0 && tree.stretch > 1.0, "{compared}");
    }

    /// The ring b00 to b04: its tree from b00 lacks the link b02-b03. Of what b02 publishes, b01, b00, b04 and b03 get each a
    /// copy over the tree in this order; the shortest ways are b01, b00 and b03, b04. A fault is found after 100 ms.
    #[test]
    fn what_is_lost_until_a_fault_is_found_comes_out_as_counted_by_hand() {
        let mut text = "
            topology = { shape = 'ring', brokers = 5 }
            links = { delay_us = [10_000, 10_000], detection_us = [100_000, 100_000] }
            client = [{ name = 'p', broker = 'b02' }"
            .to_owned();
        for broker in ["b00", "b01", "b03", "b04"] {
            text += &format!(", {{ name = '{broker}', broker = '{broker}', subscribe = {{ all = 'a = 1' }} }}");
        }
        let publish = r#"{ do = 'publish', client = 'p', event = '{"a":1}', count = 5, gap_us = 19_000 }"#;
        text += "]\nstep = [{ do = 'settle' }";
        let near = "{ do = 'cut', link = ['b00', 'b01'] }";
        let both = format!("{near}, {{ do = 'cut', link = ['b03', 'b04'] }}");
        for fault in [near, &both, "{ do = 'crash', broker = 'b00' }"] {
            text += &format!(", {fault}, {publish}, {{ do = 'settle' }}, {publish}, {{ do = 'settle' }}");
            text += ", { do = 'heal-all' }, { do = 'restart-all' }, { do = 'settle' }";
        }
        text += "]";
        let compared = compare(Scenario::parse(&text).expect("a scenario"), 3).expect("a good scenario");
        assert_eq!(compared.complaints, [""; 0], "{compared}");
        let [flooding, tree, own] = compared.schemes.each_ref().map(|scheme| {
            let counted = scheme.losses.iter().map(|loss| [loss.lost, loss.expected]);
            counted.filter(|&[_, expected]| expected > 0).collect::<Vec<_>>()
        });
        assert_eq!(flooding, [[0, 20], [0, 20], [10, 20], [10, 20], [0, 15], [0, 15]]);
        assert_eq!(tree, [[15, 20], [0, 20], [15, 20], [10, 20], [10, 15], [0, 15]]);
        // What the transport had not taken yet goes another way, if there is one.
        assert!(own[0][0] <= 5 && own[0][1] == 20, "{compared}");
        assert_eq!(own[1..], [[0, 20], [10, 20], [10, 20], [0, 15], [0, 15]]);
    }
}
