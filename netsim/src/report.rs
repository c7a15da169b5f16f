//! What came of a run, as a table for people and as JSON.

use crate::book::Verdict;
use crate::tally::{Count, LinkTally};
use crate::world::World;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Everything counted in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether real brokers have run, in real time. What only the simulator can count is left at nothing then.
    pub real: bool,
    /// Of the scenario.
    pub name: String,
    /// Everything random came from this.
    pub seed: u64,
    /// How many there are.
    pub brokers: usize,
    /// The time at the end, virtual unless `real`, in microseconds.
    pub virtual_time_us: u64,
    /// Publications that were asked for.
    pub publications: usize,
    /// Of these, refused since they were outside the client's advertisements.
    pub refused: u64,
    /// Of these, never answered since the broker crashed.
    pub unanswered: u64,
    /// Subscriptions whose wait ran out; they followed.
    pub partial: u64,
    /// What came and what did not, of all clients.
    pub total: Verdict,
    /// Client by client.
    pub clients: Vec<ClientLine>,
    /// Link by link.
    pub links: Vec<LinkLine>,
    /// Events that went over links, with their bytes.
    pub events: Count,
    /// Publications made while the network was settled, and kept so until they were over.
    pub calm_publications: u64,
    /// Links that these crossed.
    pub calm_crossings: u64,
    /// Links in the unions of the shortest paths from their publishers to who wanted them.
    pub calm_shortest: u64,
    /// Links that these would have crossed with one spanning tree shared by all, pruned to who wants them.
    pub calm_shared_tree: u64,
    /// Of these publications, each to each broker that wanted it: how many went so many percent of the least cost.
    pub stretch: BTreeMap<u64, u64>,
    /// Links that flooding would have crossed, for all publications.
    pub flooding: u64,
    /// Bytes of control and of events, in each second of virtual time; of a long run only of the beginning.
    pub seconds: Vec<[u64; 2]>,
    /// Control messages by kind.
    pub control: BTreeMap<&'static str, Count>,
    /// Broker by broker.
    pub tables: Vec<TableLine>,
    /// How long the network took to come to rest.
    pub settles: Vec<Settle>,
    /// Reasons for closing connections, and how often.
    pub closes: BTreeMap<String, u64>,
    /// What is wrong, in words.
    pub complaints: Vec<String>,
}

/// A client's line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientLine {
    /// Its name.
    pub client: String,
    /// The broker's name.
    pub broker: String,
    /// Deliveries that its queue dropped while it read nothing; they count as received.
    pub dropped: u64,
    /// What came and what did not.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A link's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkLine {
    /// The names of its ends.
    pub ends: [String; 2],
    /// What went over it.
    #[serde(flatten)]
    pub tally: LinkTally,
}

/// A broker's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableLine {
    /// Its name.
    pub broker: String,
    /// Subscriptions of its clients.
    pub subscriptions: u64,
    /// Distinct conjunctions in its forest.
    pub forest_nodes: u64,
    /// Roots of the forest.
    pub forest_roots: u64,
    /// Filters of other brokers that it holds.
    pub interest: u64,
    /// Filters that it has told other brokers.
    pub announced: u64,
}

/// What one [`crate::Step::Settle`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Settle {
    /// The place of the step, from 0.
    pub step: usize,
    /// Until the last thing happened, in microseconds of virtual time.
    pub took_us: u64,
    /// Control messages since the settling before; nothing of real brokers.
    pub control: Count,
    /// Likewise, events that clients had to get.
    pub expected: u64,
    /// Of these, those that a fault explains the loss of.
    pub lost: u64,
}

impl Report {
    /// Whether nothing is wrong: nothing missed, nothing twice, nothing that must not be, no complaint.
    pub fn is_good(&self) -> bool {
        self.total.missed + self.total.duplicates + self.total.wrong == 0 && self.complaints.is_empty()
    }

    pub(crate) fn of(world: &mut World, name: &str, seed: u64, settles: Vec<Settle>) -> Report {
        let tables = table_lines(world);
        let world = &*world;
        let broker = |host: usize| world.hosts[host].name.to_string();
        let clients = world.clients.iter().enumerate().map(|(number, client)| ClientLine {
            client: client.name.to_string(),
            broker: broker(client.host),
            dropped: client.dropped,
            verdict: world.verdict(number),
        });
        let links = world.edges.iter().zip(&world.tally.links).filter(|(edge, _)| !edge.is_loop());
        Report {
            real: false,
            name: name.to_owned(),
            seed,
            brokers: world.hosts.len(),
            virtual_time_us: world.now().0,
            publications: world.oracle.publications(),
            refused: world.oracle.refused,
            unanswered: world.oracle.unanswered,
            partial: world.partial,
            total: world.total(),
            clients: clients.collect(),
            links: links.map(|(edge, &tally)| LinkLine { ends: edge.hosts.map(broker), tally }).collect(),
            events: world.tally.events,
            calm_publications: world.calm_publications,
            calm_crossings: world.calm_crossings,
            calm_shortest: world.calm_union,
            calm_shared_tree: world.calm_tree,
            stretch: world.stretch.clone(),
            flooding: world.oracle.flooding,
            seconds: world.tally.seconds.clone(),
            control: world.tally.control.clone(),
            tables,
            settles,
            closes: world.tally.closes.clone(),
            complaints: world.complaints().to_vec(),
        }
    }
}

fn table_lines(world: &mut World) -> Vec<TableLine> {
    let brokers = world.broker_count();
    let line = |host: usize| {
        let core = world.hosts[host].core.as_mut()?;
        let (status, [interest, announced]) = (core.own_status(), core.interest_held_and_told());
        Some(TableLine {
            broker: world.hosts[host].name.to_string(),
            subscriptions: status.subscriptions,
            forest_nodes: status.forest_nodes,
            forest_roots: status.forest_roots,
            interest,
            announced,
        })
    };
    (0..brokers).filter_map(line).collect()
}

/// At most so many lines of a kind in the table; the JSON has all.
const MOST_LINES: usize = 40;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = self.links.len();
        writeln!(f, "{}: {} brokers, {links} links, seed {}", self.name, self.brokers, self.seed)?;
        let time = if self.real { "real processes" } else { "virtual time" };
        writeln!(f, "{:.3} s of {time}", self.virtual_time_us as f64 / 1e6)?;
        for settle in &self.settles {
            let Settle { step, took_us, control, expected, lost } = settle;
            write!(f, "  step {step} settled after {:.3} s", *took_us as f64 / 1e6)?;
            writeln!(f, "; {} bytes of control; {lost} of {expected} lost", control.bytes)?;
        }
        self.write_clients(f)?;
        self.write_links(f)?;
        self.write_control(f)?;
        self.write_tables(f)?;
        writeln!(
            f,
            "\nwrong: {}",
            if self.is_good() { "nothing".to_owned() } else { self.complaints.len().to_string() }
        )?;
        self.complaints.iter().try_for_each(|complaint| writeln!(f, "  {complaint}"))
    }
}

impl Report {
    fn write_clients(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, refused, unanswered) = (self.publications, self.refused, self.unanswered);
        writeln!(f, "\n{asked} publications ({refused} refused, {unanswered} unanswered)")?;
        let head = ["client", "broker", "expected", "received", "also", "twice", "lost", "missed", "wrong"];
        let cells = |name: &str, broker: &str, verdict: &Verdict| {
            let numbers = [
                verdict.expected,
                verdict.received,
                verdict.optional,
                verdict.duplicates,
                verdict.lost(),
                verdict.missed,
                verdict.wrong,
            ];
            [name.to_owned(), broker.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
        };
        let mut lines: Vec<Vec<String>> =
            self.clients.iter().map(|line| cells(&line.client, &line.broker, &line.verdict)).collect();
        shorten(&mut lines, head.len());
        lines.push(cells("all", "", &self.total));
        table(f, &head, &lines)
    }

    fn write_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nevents crossed links {} times ({} bytes)", self.events.messages, self.events.bytes)?;
        let [events, crossed] = [self.calm_publications, self.calm_crossings];
        let [shortest, tree] = [self.calm_shortest, self.calm_shared_tree];
        if !self.real {
            writeln!(
                f,
                "  {events} of settled times: {crossed}; the shortest paths have {shortest}, one shared tree {tree}"
            )?;
            writeln!(f, "  flooding would have crossed {} times", self.flooding)?;
        }
        let head = ["link", "there", "back", "useless", "event bytes", "control", "control bytes"];
        let cells = |line: &LinkLine| {
            let LinkTally { events, useless, event_bytes, control } = line.tally;
            let numbers = [events[0], events[1], useless, event_bytes, control.messages, control.bytes];
            [line.ends.join(" - ")].into_iter().chain(numbers.map(|number| number.to_string())).collect()
        };
        let mut lines: Vec<Vec<String>> = self.links.iter().map(cells).collect();
        shorten(&mut lines, head.len());
        table(f, &head, &lines)
    }

    fn write_control(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut total = Count::default();
        let mut lines: Vec<Vec<String>> = Vec::new();
        for (kind, count) in &self.control {
            total.messages += count.messages;
            total.bytes += count.bytes;
            lines.push(vec![(*kind).to_owned(), count.messages.to_string(), count.bytes.to_string()]);
        }
        lines.push(vec!["all".to_owned(), total.messages.to_string(), total.bytes.to_string()]);
        writeln!(f)?;
        table(f, &["control", "messages", "bytes"], &lines)?;
        self.closes.iter().try_for_each(|(reason, count)| writeln!(f, "  closed {count} times: {reason}"))
    }

    fn write_tables(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["broker", "subscriptions", "distinct", "roots", "interest held", "announced"];
        let cells = |line: &TableLine| {
            let numbers = [line.subscriptions, line.forest_nodes, line.forest_roots, line.interest, line.announced];
            [line.broker.clone()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
        };
        let mut lines: Vec<Vec<String>> = self.tables.iter().map(cells).collect();
        shorten(&mut lines, head.len());
        writeln!(f)?;
        table(f, &head, &lines)
    }
}

fn shorten(lines: &mut Vec<Vec<String>>, columns: usize) {
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push(vec!["…".to_owned(); columns]);
    }
}

/// The first column to the left, the others to the right.
pub(crate) fn table(f: &mut fmt::Formatter<'_>, head: &[&str], lines: &[Vec<String>]) -> fmt::Result {
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([&head]).filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for line in [&head].into_iter().chain(lines) {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            match column {
                0 => write!(f, "  {cell:<width$}")?,
                _ => write!(f, "  {cell:>width$}")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}
