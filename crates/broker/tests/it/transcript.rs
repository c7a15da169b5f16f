//! Transcripts: what is done to a few brokers, and below each step every message that follows. `UPDATE_EXPECT=1` writes
//! them anew. They read as documentation of the protocol.

use crate::world::World;
use enroute_broker::*;
use enroute_filter::{Event, Filter};
use std::fmt::Write;
use std::time::Duration;

/// One output as a line.
pub(crate) fn describe(world: &World, id: BrokerId, output: &Output) -> String {
    let name = |id: BrokerId| world.names.get(&id).cloned().unwrap_or_else(|| id.to_string());
    let peer = |link: LinkId| world.peer_of(id, link).map_or("nowhere".into(), |(peer, _)| name(peer));
    let me = name(id);
    match output {
        Output::Send { link, message } => format!("{me} -> {}: {}", peer(*link), describe_message(message, &name)),
        Output::Forward { link, frame } => {
            let destinations: Vec<String> = frame.destinations.iter().map(|&id| name(id)).collect();
            let (to, id, destinations) = (peer(*link), frame.id.sequence, destinations.join(" "));
            format!("{me} -> {to}: event {}/{id} for {destinations}, {} hops", name(frame.id.origin), frame.hop_limit)
        }
        Output::Deliver { client, delivery } => {
            let id = format!("{}/{}", name(delivery.id.origin), delivery.id.sequence);
            format!("{me} delivers event {id} to client {}: {}", client.0, delivery.subscriptions.join(" "))
        }
        Output::Reply { client, request: _, reply } => {
            format!("{me} answers client {}: {}", client.0, describe_reply(reply, &name))
        }
        Output::CloseLink { link, reason } => format!("{me} closes the link to {}: {reason}", peer(*link)),
        Output::StoreIncarnation(incarnation) => format!("{me} stores incarnation {incarnation}"),
        Output::IdentityInUse => format!("{me} stops: its identity is in use"),
        Output::Notice(notice) => format!("{me} notes: {notice}"),
    }
}

fn version(version: Version) -> String {
    format!("{}.{}", version.incarnation, version.sequence)
}

fn filters(filters: &[AnnouncedFilter]) -> String {
    let text = |filter: &AnnouncedFilter| filter.conjunction().map_or("unreadable".into(), |it| it.to_string());
    format!("[{}]", filters.iter().map(text).collect::<Vec<_>>().join("; "))
}

fn describe_message(message: &Message, name: &dyn Fn(BrokerId) -> String) -> String {
    match message {
        Message::Offer { held, last: _ } => {
            let one = |held: &Held| format!("{} {} {}", name(held.origin), version(held.links), version(held.scope));
            format!("offer [{}]", held.iter().map(one).collect::<Vec<_>>().join("; "))
        }
        Message::Synced => "synced".into(),
        Message::SyncedAck => "synced, too".into(),
        Message::LinkState(record) => {
            let links: Vec<String> = record.links.iter().map(|link| name(link.neighbour)).collect();
            let starting = if record.starting { " (starting)" } else { "" };
            let (origin, version) = (name(record.origin), version(record.version));
            format!("links of {origin} {version}{starting}: [{}]", links.join(" "))
        }
        Message::Scope(record) => {
            format!("scope of {} {}: {}", name(record.origin), version(record.version), describe_scope(&record.scope))
        }
        Message::Routed(letters) => {
            let one = |letter: &Routed| {
                let (source, destination) = (name(letter.source.broker), name(letter.destination.broker));
                format!("({source} to {destination}) {}", describe_routed(&letter.body, name))
            };
            letters.0.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        Message::Leaf(message) => describe_leaf(message, name),
    }
}

fn describe_leaf(message: &LeafMessage, name: &dyn Fn(BrokerId) -> String) -> String {
    match message {
        LeafMessage::Attach(Attach { epoch, previous, table: _ }) => {
            format!("attachment {epoch}: take me in, before I was below [{}]", names(previous, name))
        }
        LeafMessage::Path(path) => format!("path to the core [{}]", names(path, name)),
        LeafMessage::Interest(interest) => describe_interest(interest),
        LeafMessage::Held { step, brokers, missing } => {
            let without =
                if missing.is_empty() { String::new() } else { format!(", without [{}]", names(missing, name)) };
            format!("interest {step} is held, at {brokers} brokers beyond{without}")
        }
        LeafMessage::Scope { version, scope } => format!("scope {version}: {}", describe_scope(scope)),
        LeafMessage::Renew { number } => format!("question {number} for a lease"),
        LeafMessage::Lease { number, lasts_us } => format!("lease {number}, {} ms", lasts_us / 1_000),
        LeafMessage::Revoke => "no lease until the next".into(),
        LeafMessage::Detach(detach) => describe_detach(detach, name),
    }
}

fn names(ids: &[BrokerId], name: &dyn Fn(BrokerId) -> String) -> String {
    ids.iter().map(|&id| name(id)).collect::<Vec<_>>().join(" ")
}

fn describe_detach(detach: &Detach, name: &dyn Fn(BrokerId) -> String) -> String {
    let Detach { leaf, incarnation, epoch, path } = detach;
    format!("{} has moved by attachment {incarnation}.{epoch}, was below [{}]", name(*leaf), names(path, name))
}

fn describe_scope(scope: &Scope) -> String {
    match scope {
        Scope::Nobody => "nobody".into(),
        Scope::Anything => "anything".into(),
        Scope::Filters(list) => filters(list),
    }
}

fn describe_interest(interest: &Interest) -> String {
    let Interest { scope_version, part } = interest;
    let InterestPart { version, whole, added, removed, last, digest: _ } = &**part;
    let whole = if *whole { "whole " } else { "" };
    let last = if *last { "" } else { " ..." };
    let (added, removed) = (filters(added), filters(removed));
    format!("{whole}interest {version} for scope {scope_version}: +{added} -{removed}{last}")
}

fn describe_routed(body: &RoutedBody, name: &dyn Fn(BrokerId) -> String) -> String {
    match body {
        RoutedBody::Data { epoch, sequence, payload } => match payload {
            Payload::Interest(interest) => format!("{epoch}:{sequence} {}", describe_interest(interest)),
            Payload::Detach(detach) => format!("{epoch}:{sequence} {}", describe_detach(detach, name)),
            Payload::Resync { version } => format!("{epoch}:{sequence} send interest {version} whole"),
        },
        RoutedBody::Ack { epoch, received } => format!("got {epoch}:{received}"),
        RoutedBody::Restart { epoch } => format!("begin {epoch} anew"),
    }
}

fn describe_reply(reply: &Reply, name: &dyn Fn(BrokerId) -> String) -> String {
    match reply {
        Reply::InForce { brokers } => format!("in force at {brokers} brokers"),
        Reply::Partial { missing } => {
            format!("partial, without {}", missing.iter().map(|&id| name(id)).collect::<Vec<_>>().join(" "))
        }
        Reply::Withdrawn => "withdrawn".into(),
        Reply::Published(receipt) => {
            let complete = if receipt.complete { "" } else { ", view incomplete" };
            format!("published {}, {} destinations{complete}", receipt.id.sequence, receipt.destinations)
        }
        Reply::Refused(refusal) => format!("refused: {refusal}"),
    }
}

/// Carries out one step of a transcript.
fn step(world: &mut World, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let id = |index: usize| BrokerId::of_peer(words[index]);
    let rest = |from: usize| words[from..].join(" ");
    match words[0] {
        "start" => {
            world.start(words[1]);
        }
        "leaf" => {
            world.start_leaf(words[1]);
        }
        "kill" => world.kill(id(1)),
        "link" => world.link(id(1), id(2)),
        "attach" => world.attach(id(1), id(2)),
        "lose" => world.lose(id(1), id(2)),
        "cut" => world.cut(id(1), id(2)),
        "run" => world.run(),
        "wait" => world.advance(Duration::from_millis(words[1].parse().expect("milliseconds"))),
        "subscribe" => {
            world.subscribe(id(1), 1, words[2], &rest(3));
        }
        "unsubscribe" => {
            world.command(id(1), 1, Command::Unsubscribe { name: words[2].into() });
        }
        "advertise" => {
            let filter = Filter::parse(&rest(3)).expect("a filter");
            world.command(id(1), 1, Command::Advertise { name: words[2].into(), filter });
        }
        "unadvertise" => {
            world.command(id(1), 1, Command::Unadvertise { name: words[2].into() });
        }
        "publish" => {
            let (event, _) = enroute_filter::JsonReader::default().read(&rest(2)).expect("an event");
            let event: Event = event;
            world.publish(id(1), 1, event);
        }
        "disconnect" => world.input(id(1), Input::ClientDisconnected { client: ClientId(1) }),
        other => panic!("no such step: {other}"),
    }
}

/// Runs the steps of a transcript (lines that begin with `>`; lines that begin with `#` are words for the reader).
fn rerun(text: &str) -> String {
    let mut world = World::new();
    world.transcript = Some(Vec::new());
    let mut written = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            writeln!(written, "{line}").expect("strings can be written");
            step(&mut world, command);
            for line in world.transcript.replace(Vec::new()).expect("a transcript is kept") {
                writeln!(written, "{line}").expect("strings can be written");
            }
        } else if line.starts_with('#') || line.is_empty() {
            writeln!(written, "{line}").expect("strings can be written");
        }
    }
    written
}

#[test]
fn transcripts_are_as_written() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts");
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).expect("transcripts").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 8, "transcripts are missing");
    for path in paths {
        let expected = std::fs::read_to_string(&path).expect("a transcript");
        let actual = rerun(&expected);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, actual).expect("the transcript can be written");
        } else {
            assert!(
                actual == expected,
                "{} is different now; UPDATE_EXPECT=1 writes it anew:\n{actual}",
                path.display()
            );
        }
    }
}
