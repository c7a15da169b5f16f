//! Letters that others pass on: what comes in a frame goes out in frames, and not in many more bytes.

use bytes::BytesMut;
use enroute_broker::{
    AnnouncedFilter, Broker, BrokerId, Config, Detach, Digest, Identity, Input, Interest, InterestPart, Letters, Life,
    LinkEnd, LinkId, LinkState, MAX_LETTERS, Message, Neighbour, Output, Payload, Role, Routed, RoutedBody, Time,
    Version,
};
use enroute_wire::{ControlFrame, Frame, Kind, MAX_CONTROL, encode_message};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Links from the broker that passes on to its neighbours: the first says what it likes, the others may be told.
const LINKS: u64 = 4;

fn name(number: u64) -> String {
    format!("neighbour {number}")
}

fn id(number: u64) -> BrokerId {
    BrokerId::of_peer(&name(number))
}

fn handle(broker: &mut Broker, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    broker.handle(input, Time(0), &mut out);
    out
}

/// A neighbour that has dialled so often.
fn dialled(number: u64, dial: u64) -> Neighbour {
    Neighbour {
        broker: id(number),
        role: Role::Core,
        peer_id: name(number).into(),
        incarnation: 1,
        start_nonce: 1,
        dialled_by: id(number),
        dial,
        cost: 1,
        told_incarnation: 1,
    }
}

/// A broker with links that are in use.
fn hub() -> Broker {
    let peer_id: Arc<str> = "hub".into();
    let me = BrokerId::of_peer(&peer_id);
    let identity = Identity { id: me, peer_id, incarnation: 1, start_nonce: 1, addresses: Vec::new() };
    let mut broker = Broker::new(identity, Config::default(), Time(0));
    for number in 0..LINKS {
        let (link, neighbour) = (LinkId(number), id(number));
        handle(&mut broker, Input::LinkUp { link, neighbour: dialled(number, 1) });
        let nonce = broker.link_nonce(neighbour).expect("it is linked");
        let record = LinkState {
            origin: neighbour,
            peer_id: name(number).into(),
            start_nonce: 1,
            version: Version { incarnation: 1, sequence: 1 },
            starting: false,
            addresses: Vec::new(),
            links: vec![LinkEnd { neighbour: me, cost: 1, nonce }],
        };
        for message in [
            Message::Offer { held: Vec::new(), last: true },
            Message::Synced,
            Message::SyncedAck,
            Message::LinkState(record.into()),
        ] {
            let out = handle(&mut broker, Input::Message { link, message });
            assert!(!out.iter().any(|output| matches!(output, Output::CloseLink { .. })), "{out:?}");
        }
    }
    broker
}

fn part(filters: usize, bytes: usize, version: u64) -> Arc<InterestPart> {
    let (added, removed) = (vec![AnnouncedFilter(vec![7; bytes].into()); filters], Vec::new());
    Arc::new(InterestPart { version, whole: true, added, removed, last: true, digest: Digest(u128::MAX) })
}

fn letter(to: u64, passed: u16, payload: Payload) -> Routed {
    let (source, destination) = (Life { broker: id(0), incarnation: 1 }, Life { broker: id(to), incarnation: 1 });
    Routed { source, destination, passed, body: RoutedBody::Data { epoch: 4, sequence: 5, payload } }
}

fn interest(to: u64, part: &Arc<InterestPart>) -> Routed {
    letter(to, 0, Payload::Interest(Interest { scope_version: 1, part: part.clone() }))
}

fn detach(to: u64, brokers: usize) -> Routed {
    letter(to, 0, Payload::Detach(Detach { leaf: BrokerId(7), incarnation: 1, epoch: 1, path: path(brokers) }))
}

fn content(letters: &[Routed]) -> Option<Vec<u8>> {
    let mut bytes = BytesMut::new();
    encode_message(&Message::Routed(Letters(letters.to_vec())), &mut bytes).ok()?;
    Some(bytes.split_off(5).to_vec())
}

fn read(content: Vec<u8>) -> Option<Message> {
    match ControlFrame::decode(&Frame { kind: Kind::Message, content: content.into() }) {
        Ok(ControlFrame::Message(message)) => Some(message),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

/// Lets the first neighbour send frames. What of them can be read is passed on: each link gets all that is for it, in frames that
/// can be written, and at most four times as many bytes as came. Gives how many letters went.
fn pass_on(frames: Vec<Vec<u8>>) -> usize {
    let mut broker = hub();
    let (mut came, mut expected) = (0, 0);
    let (mut sent, mut went) = (vec![0; LINKS as usize], 0);
    let mut out = Vec::new();
    for content in frames {
        let size = content.len();
        let Some(message) = read(content) else { continue };
        let Message::Routed(letters) = &message else { panic!("letters") };
        expected += letters.0.iter().filter(|letter| letter.passed < 1_024).count();
        came += size;
        out.extend(handle(&mut broker, Input::Message { link: LinkId(0), message }));
    }
    broker.handle(Input::Timer, Time(1_000_000_000), &mut out);
    for output in out {
        match output {
            Output::Send { link, message: Message::Routed(letters) } => {
                let bytes = content(&letters.0).expect("what is passed on can be written");
                assert!(read(bytes.clone()).is_some(), "and read");
                sent[link.0 as usize] += bytes.len();
                went += letters.0.len();
            }
            Output::CloseLink { .. } => panic!("{output:?}"),
            _ => {}
        }
    }
    assert_eq!(went, expected, "none is left behind");
    for bytes in sent {
        assert!(bytes <= 4 * came + 1_000, "{bytes} bytes of {came}");
    }
    went
}

#[test]
fn a_large_part_for_many_does_not_become_many_large_parts() {
    for bytes in [10_000, 40_000, 63_000, 70_000, 130_000, 260_000, 700_000] {
        let two = [part(1, bytes, 1), part(1, bytes * 2 / 3, 2)];
        for count in [1, 2, 3, 5, 15, 16, 40, MAX_LETTERS] {
            for links in 1..LINKS {
                let same = (0..count as u64).map(|number| interest(1 + number % links, &two[0]));
                pass_on(content(&same.collect::<Vec<_>>()).into_iter().collect());
                let either = (0..count).map(|number| interest(1 + number as u64 % links, &two[number % 2]));
                pass_on(content(&either.collect::<Vec<_>>()).into_iter().collect());
            }
        }
    }
}

/// What letters have at most is reckoned with the longest numbers: it never is the frame that is too long for what may be said.
#[test]
fn what_may_be_said_fits_in_a_frame() {
    let life = |number: u64| Life { broker: BrokerId(u64::MAX - number), incarnation: number % 2 * (u64::MAX / 2) };
    let body = |payload| RoutedBody::Data { epoch: u64::MAX, sequence: u64::MAX, payload };
    let fits = |letters: Vec<Routed>| {
        let mut bytes = BytesMut::new();
        let result = encode_message(&Message::Routed(Letters(letters)), &mut bytes);
        result.inspect_err(|error| assert!(error.to_string().contains("at once"), "{error}")).is_ok()
    };
    for count in [1, 2, 30, 300, MAX_LETTERS as u64] {
        let letters = |payload: &dyn Fn(usize) -> Payload, size: usize| {
            let letter = |number: u64| Routed {
                source: life(2 * number),
                destination: life(2 * number + 1),
                passed: u16::MAX,
                body: body(payload(size)),
            };
            (0..count).map(letter).collect::<Vec<_>>()
        };
        let leaf = |size| Detach { leaf: BrokerId(u64::MAX), incarnation: u64::MAX, epoch: u64::MAX, path: path(size) };
        let payloads: [&dyn Fn(usize) -> Payload; 4] = [
            &|size| Payload::Detach(leaf(size)),
            &|size| interest_of(&part(1, size, u64::MAX)),
            &|size| interest_of(&part(size / 300, 300, u64::MAX)),
            &|size| interest_of(&part(size, 0, u64::MAX)),
        ];
        for payload in payloads {
            let (mut most, mut too_many) = (0, MAX_CONTROL / count as usize + 1);
            while too_many - most > 1 {
                let size = (most + too_many) / 2;
                if fits(letters(payload, size)) { most = size } else { too_many = size }
            }
            assert!(most > 0 || count as usize == MAX_LETTERS);
        }
    }
}

/// Much that has no bytes, or none that look like much.
#[test]
fn what_looks_small_is_not_gathered_beyond_a_frame() {
    let none = content(&[interest(1, &part(200_000, 0, 1))]);
    assert_eq!(pass_on(vec![none.expect("within the limits"); 8]), 8);
    let paths = content(&[detach(1, 50_000)]);
    assert_eq!(pass_on(vec![paths.expect("within the limits"); 8]), 8);
}

fn path(brokers: usize) -> Vec<BrokerId> {
    vec![BrokerId(u64::MAX); brokers]
}

fn interest_of(part: &Arc<InterestPart>) -> Payload {
    Payload::Interest(Interest { scope_version: u64::MAX, part: part.clone() })
}

#[test]
fn what_is_told_honestly_passes() {
    // Parts as brokers cut them: 64 KiB of filters, be they as small as there are, or one of the largest.
    for (filters, bytes) in [(1, 64 << 10), (1_000, 65), (32 << 10, 2), (13_000, 5)] {
        let part = part(filters, bytes, 1);
        for links in 1..LINKS {
            let letters: Vec<Routed> = (0..3).map(|number| interest(1 + number % links, &part)).collect();
            assert_eq!(pass_on(vec![content(&letters).expect("within the limits"); 3]), 9);
        }
    }
}

fn any_letter(parts: usize) -> impl Strategy<Value = (u64, u16, usize)> {
    (1..LINKS, prop_oneof![0..4_u16, 248..253_u16, 1_020..1_026_u16], 0..parts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_comes_is_passed_on_in_few_bytes_and_frames(
        parts in vec((0..2_000_usize, prop_oneof![Just(0_usize), 0..300_usize, 0..3_000_usize]), 1..8),
        frames in vec(vec(any_letter(8), 1..300), 1..4),
    ) {
        let parts: Vec<Arc<InterestPart>> =
            parts.iter().zip(1..).map(|(&(filters, bytes), version)| part(filters, bytes, version)).collect();
        let frames = frames.into_iter().filter_map(|letters| {
            let letters: Vec<Routed> = (letters.into_iter())
                .map(|(to, passed, place)| letter(to, passed, interest_of(&parts[place % parts.len()])))
                .collect();
            content(&letters)
        });
        pass_on(frames.collect());
    }

    #[test]
    fn each_letter_goes_in_order_and_in_time_though_links_are_replaced(
        steps in vec((prop_oneof![0..50_u64, 0..3_000_u64], 0..10_u8, vec(1..LINKS, 1..12)), 1..80),
    ) {
        let mut passing = Passing::new();
        for (pause, action, destinations) in steps {
            passing.wait(Time(passing.now.0 + pause));
            if action == 0 {
                passing.replace(destinations[0]);
            } else {
                passing.pass_on(destinations);
            }
        }
        passing.wait(Time(passing.now.0 + 10_000));
        for (number, waiting) in passing.waiting.iter().enumerate() {
            prop_assert!(waiting.is_empty(), "{} never went to {}", waiting.len(), number);
        }
    }
}

/// Letters on their way through a broker whose links are replaced by and by.
struct Passing {
    broker: Broker,
    now: Time,
    said: u64,
    dials: u64,
    /// Which links there are, and to whom.
    links: Vec<u64>,
    /// For each neighbour the letters that have not gone, and when they came.
    waiting: Vec<VecDeque<(u64, Time)>>,
}

impl Passing {
    fn new() -> Passing {
        let waiting = vec![VecDeque::new(); LINKS as usize];
        Passing { broker: hub(), now: Time(0), said: 0, dials: 1, links: (0..LINKS).collect(), waiting }
    }

    fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.broker.handle(input, self.now, &mut out);
        for output in out {
            let Output::Send { link, message: Message::Routed(letters) } = output else { continue };
            let number = self.links[link.0 as usize];
            assert_eq!(self.links.iter().rposition(|&it| it == number), Some(link.0 as usize), "the link in use");
            for letter in letters.0 {
                let (said, at) = self.waiting[number as usize].pop_front().expect("it was told once");
                assert_eq!(letter.body, RoutedBody::Restart { epoch: said });
                assert!(self.now.since(at) <= Config::default().gather);
            }
        }
    }

    /// Time passes, and the broker is woken when it wants to be.
    fn wait(&mut self, until: Time) {
        while let Some(at) = self.broker.wake_at().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.input(Input::Timer);
        }
        self.now = until;
    }

    fn replace(&mut self, number: u64) {
        self.dials += 1;
        let link = LinkId(self.links.len() as u64);
        self.links.push(number);
        self.input(Input::LinkUp { link, neighbour: dialled(number, self.dials) });
    }

    fn pass_on(&mut self, destinations: Vec<u64>) {
        let letters = destinations.into_iter().map(|to| {
            self.said += 1;
            self.waiting[to as usize].push_back((self.said, self.now));
            Routed { body: RoutedBody::Restart { epoch: self.said }, ..detach(to, 0) }
        });
        let message = Message::Routed(Letters(letters.collect()));
        self.input(Input::Message { link: LinkId(0), message });
    }
}
