//! `enroute status`: what a broker knows and has counted.

use crate::connection::BrokerOption;
use crate::failure::Failure;
use crate::output::Output;
use crate::runtime::this_thread;
use crate::table::{Table, count, counted};
use clap::Args;
use enroute_broker::{
    BrokerStatus, Counters, ImperfectStatus, LeafStatus, LinkStatus, PredicateStatus, Status, UplinkStatus,
};
use enroute_client::{ClientStatus, LinkReason, MemberStatus, NodeStatus, PeerStatus, RefusedStatus};

/// The options.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    broker: BrokerOption,
    /// Print one JSON object with all there is
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    this_thread(async {
        let client = options.broker.connect().await?;
        let failed = |error| Failure::new("the broker says nothing of its state").because(&error);
        let mut output = Output::new();
        if options.json {
            output.line(client.status_json().await.map_err(failed)?)?;
        } else {
            output.line(render(&client.status().await.map_err(failed)?))?;
        }
        client.close().await;
        output.flush()
    })
}

/// The sections, an empty line between them; a table without rows is left out.
fn render(status: &NodeStatus) -> String {
    let broker = &status.broker;
    let sections = [
        Some(summary(status)),
        (!status.peers.is_empty()).then(|| section(peers_name(broker), &peers(&status.peers))),
        broker.uplink.as_ref().map(|leaf| uplink(status, leaf)),
        (!broker.links.is_empty()).then(|| section("links", &links(status))),
        (!status.members.is_empty()).then(|| section("members remembered", &members(&status.members))),
        (!broker.leaves.is_empty()).then(|| section("leaves", &leaves(status))),
        broker.uplink.is_none().then(|| section("brokers", &brokers(&broker.brokers))),
        (!status.clients.is_empty()).then(|| section("clients", &clients(&status.clients))),
        (!status.refused.is_empty()).then(|| section("refused", &refused(&status.refused))),
        (!broker.predicates.is_empty()).then(|| section("predicate forests", &predicates(&broker.predicates))),
        Some(counters(&broker.counters)),
    ];
    sections.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn section(name: &str, table: &Table) -> String {
    format!("{name}\n{table}")
}

fn summary(status: &NodeStatus) -> String {
    let broker = &status.broker;
    let mut text = format!("broker {}\n  peer          {}\n", broker.id, broker.peer_id);
    text += &format!("  role          {}\n", if broker.uplink.is_some() { "leaf" } else { "core" });
    for address in &status.addresses {
        text += &format!("  listening     {address}\n");
    }
    let state = match (broker.starting, broker.complete) {
        (true, _) => "starting",
        (false, true) if broker.uplink.is_some() => "knows what others want of what is published here",
        (false, true) => "every reachable broker has said what it wants",
        // Whoever publishes nothing is told nothing.
        (false, false) if broker.scope == "nobody" => "nobody publishes here, so nobody says what they want",
        (false, false) if broker.uplink.is_some() => "does not know what others want of what is published here",
        (false, false) => "waiting for brokers to say what they want",
    };
    text += &format!("  software      {}, incarnation {}\n", status.software, broker.incarnation);
    text += &format!("  state         {state}\n");
    text += &format!("  scope         {}\n", broker.scope);
    text += &format!(
        "  subscriptions {}; {} in the forest, {}, {}which others are told\n",
        count(broker.subscriptions),
        counted(broker.forest_nodes, "filter", "filters"),
        counted(broker.forest_roots, "root", "roots"),
        broker.merging.as_ref().map_or(String::new(), |_| format!("merged into {}, ", count(broker.announced)))
    );
    if let Some(imperfect) = broker.merging.as_ref().and_then(|merging| merging.imperfect.as_ref()) {
        text += &format!("  merging       {}\n", budget(imperfect, &broker.counters));
    }
    let advertisements = counted(broker.advertisements, "advertisement", "advertisements");
    text += &format!("  clients       {}, {advertisements}\n", count(broker.clients));
    let publications = counted(broker.waiting_publications, "publication", "publications");
    let parked = counted(broker.parked_events, "parked event", "parked events");
    text += &format!("  waiting       {publications}, {parked}");
    if status.left_out > 0 {
        let left_out = counted(status.left_out, "broker or client", "brokers and clients");
        text += &format!("\n  left out      {left_out} below, for whom there is no room in an answer");
    }
    text
}

/// How far imperfect merging may go, and how far it went.
fn budget(imperfect: &ImperfectStatus, counters: &Counters) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let estimate = imperfect.estimate.map_or("no events yet".to_owned(), |share| percent(share) + " of a sample");
    format!(
        "at most {} to announce within {} of false interest: {estimate}; {} of {} came for nobody",
        counted(imperfect.filters, "filter", "filters"),
        percent(imperfect.false_interest),
        count(counters.unwanted),
        counted(counters.arrived, "event", "events")
    )
}

/// What the roots say of their attributes.
fn predicates(predicates: &[PredicateStatus]) -> Table {
    let mut table = Table::new(&["attribute", "roots", "predicates", "deep"]);
    for PredicateStatus { attribute, roots, predicates, depth } in predicates {
        let number = |number: &Option<u64>| number.map_or("-".to_owned(), count);
        table.row([shorten(attribute), count(*roots), number(predicates), number(depth)]);
    }
    table
}

/// The brokers that are dialled: one of the uplinks at a time, or all peers.
fn peers_name(broker: &Status) -> &'static str {
    if broker.uplink.is_some() { "uplinks" } else { "peers" }
}

fn peers(peers: &[PeerStatus]) -> Table {
    let mut table = Table::new(&["address", "state", "trouble"]);
    for peer in peers {
        let state = match (peer.linked, peer.oneself) {
            (_, true) => "oneself",
            (true, false) => "linked",
            (false, false) => "not linked",
        };
        let trouble = peer.last_error.as_deref().filter(|_| !peer.linked).unwrap_or("-");
        table.row([peer.address.clone(), state.to_owned(), trouble.to_owned()]);
    }
    table
}

/// How a leaf broker stands with the world above.
fn uplink(status: &NodeStatus, uplink: &UplinkStatus) -> String {
    let mut text = "uplink\n".to_owned();
    match &uplink.peer_id {
        Some(peer_id) => text += &format!("  parent        {peer_id}\n"),
        None => text += "  parent        none\n",
    }
    let path = if uplink.path.is_empty() { "none".to_owned() } else { uplink.path.join(", ") };
    let lease = match (&*status.broker.scope, status.broker.complete) {
        ("nobody", _) => "not needed: nobody publishes here or below",
        (_, true) => "held: what nobody wants is not sent up",
        (_, false) => "none",
    };
    let queue = status.link_queues.iter().find(|queue| Some(queue.link) == uplink.link);
    text += &format!("  path          {path}\n  lease         {lease}\n");
    text += &format!(
        "  interest      {} told to the parent, {} told by it\n",
        counted(uplink.announced, "filter", "filters"),
        count(uplink.interest)
    );
    text += &format!(
        "  kept for it   {}; {} dropped since there were too many\n",
        counted(uplink.kept_events, "event", "events"),
        count(status.broker.counters.lost_kept)
    );
    text += &format!(
        "  events        {} up, {} down, {} waiting, {} not sent since nobody wants them",
        count(uplink.events_sent),
        count(uplink.events_received),
        count(queue.map_or(0, |queue| queue.events_waiting)),
        count(status.broker.counters.quenched)
    );
    text
}

/// The leaf brokers below.
fn leaves(status: &NodeStatus) -> Table {
    let heading = ["leaf", "wants", "is told", "events down", "up", "waiting", "dropped", "scope"];
    let mut table = Table::new(&heading);
    for LeafStatus { link, id, scope, interest, told, events_sent, events_received, .. } in &status.broker.leaves {
        let queue = status.link_queues.iter().find(|queue| queue.link == *link);
        table.row([
            id.clone(),
            count(*interest),
            count(*told),
            count(*events_sent),
            count(*events_received),
            count(queue.map_or(0, |queue| queue.events_waiting)),
            count(queue.map_or(0, |queue| queue.events_dropped)),
            shorten(scope),
        ]);
    }
    table
}

fn links(status: &NodeStatus) -> Table {
    let heading =
        ["to", "why", "in sync", "cost", "round trip", "events out", "in", "waiting", "dropped", "control out", "in"];
    let mut table = Table::new(&heading);
    for LinkStatus {
        link,
        neighbour,
        cost,
        round_trip_us,
        in_sync,
        events_sent,
        events_received,
        control_sent,
        control_received,
        ..
    } in &status.broker.links
    {
        let queue = status.link_queues.iter().find(|queue| queue.link == *link);
        table.row([
            neighbour.clone(),
            reason(queue.map_or(LinkReason::default(), |queue| queue.reason)).to_owned(),
            if *in_sync { "yes" } else { "no" }.to_owned(),
            count(u64::from(*cost)),
            round_trip_us.map_or("-".to_owned(), milliseconds),
            count(*events_sent),
            count(*events_received),
            count(queue.map_or(0, |queue| queue.events_waiting)),
            count(queue.map_or(0, |queue| queue.events_dropped)),
            count(*control_sent),
            count(*control_received),
        ]);
    }
    table
}

/// Why there is a link.
fn reason(reason: LinkReason) -> &'static str {
    match reason {
        LinkReason::Accepted => "they dialled",
        LinkReason::Configured => "configured",
        LinkReason::Chosen => "chosen",
        LinkReason::ChosenFar => "chosen, by chance",
    }
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:03} ms", count(microseconds / 1_000), microseconds % 1_000)
}

/// Members of the network that are remembered across restarts.
fn members(members: &[MemberStatus]) -> Table {
    let mut table = Table::new(&["peer", "state", "trouble", "address"]);
    for member in members {
        let others = match member.addresses.len() {
            0 | 1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        table.row([
            member.peer_id.clone(),
            if member.reachable { "reachable" } else { "unreachable" }.to_owned(),
            member.last_error.clone().unwrap_or_else(|| "-".to_owned()),
            member.addresses.first().map_or("-".to_owned(), |address| format!("{address}{others}")),
        ]);
    }
    table
}

/// Those who were not let in, or were cut off.
fn refused(refused: &[RefusedStatus]) -> Table {
    let mut table = Table::new(&["peer", "why"]);
    for RefusedStatus { peer_id, reason } in refused {
        table.row([peer_id.clone(), reason.clone()]);
    }
    table
}

fn brokers(brokers: &[BrokerStatus]) -> Table {
    let mut table = Table::new(&["broker", "distance", "by way of", "neighbours", "wants", "is told", "scope"]);
    for broker in brokers {
        table.row([
            broker.id.clone(),
            if broker.reachable { count(broker.distance) } else { "unreachable".to_owned() },
            broker.next_hop.clone().unwrap_or_else(|| "-".to_owned()),
            count(broker.neighbours.len() as u64),
            count(broker.interest),
            count(broker.announced),
            shorten(&broker.scope),
        ]);
    }
    table
}

fn clients(clients: &[ClientStatus]) -> Table {
    let mut table = Table::new(&["client", "delivered", "waiting", "dropped", "when slow", "software"]);
    for client in clients {
        table.row([
            count(client.client),
            count(client.delivered),
            count(client.waiting),
            count(client.dropped),
            client.slow_subscriber.clone(),
            client.software.clone(),
        ]);
    }
    table
}

fn counters(counters: &Counters) -> String {
    let Counters {
        published,
        delivered,
        arrived,
        unwanted,
        forwarded,
        lost_no_path,
        lost_hop_limit,
        lost_overflow,
        published_incomplete,
        quenched,
        seen_again,
        strays,
        lost_kept,
        lost_with_leaf,
        resent,
        resyncs,
    } = *counters;
    let [published, delivered, forwarded, unwanted] = [published, delivered, forwarded, unwanted].map(count);
    let arrived = count(arrived);
    let [no_path, hop_limit, overflow] = [lost_no_path, lost_hop_limit, lost_overflow].map(count);
    let [quenched, seen_again, strays] = [quenched, seen_again, strays].map(count);
    let [kept, with_leaf] = [lost_kept, lost_with_leaf].map(count);
    let [incomplete, resent, resyncs] = [published_incomplete, resent, resyncs].map(count);
    format!(
        "since the start\n  \
         published {published} ({incomplete} before all had said what they want), delivered {delivered}, forwarded {forwarded}\n  \
         lost: no path {no_path}, hop limit {hop_limit}, too much waiting {overflow}; {arrived} came, for nobody {unwanted}\n  \
         leaves: not sent up {quenched}, came again {seen_again}, too late {strays}; lost: too much kept {kept}, with a leaf {with_leaf}\n  \
         control: sent again {resent}, whole syncs {resyncs}"
    )
}

/// A scope may be a long filter; a table shows its beginning.
fn shorten(text: &str) -> String {
    const WIDTH: usize = 60;
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
