//! Routed control on its way: letters that leave over one link soon after each other leave together.
//!
//! Few go at once. When many go over a link, since many answer a new publisher or a publisher acknowledges what many have said,
//! the rest waits for a moment for what follows: what letters have in common then goes over the link once ([`Letters`]).

use crate::broker::Broker;
use crate::timers::Timer;
use crate::{Letters, LinkId, MAX_LETTERS, MAX_LETTERS_BYTES, Message, Output, Routed, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Brokers that a letter may pass; far more than on any path that tables would choose.
const MOST_PASSED: u16 = 1_024;

/// How often letters go at once over a link within [`Config::gather`](crate::Config::gather).
const BURST: u32 = 4;

/// Bytes of letters that go together, unless a single one has more. What comes together mostly goes on together, and that is never
/// more than [`MAX_LETTERS_BYTES`] with each part as often as it is named: who sends more than this makes nobody send over a
/// link more than four times as much, and who sends less not more than twice as much.
const BYTES: usize = 256 << 10;

/// Letters that are about to go over a link.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    letters: Vec<Routed>,
    /// The most that they take as they are written, and would take with all that each says in it.
    bytes: usize,
    unpacked: usize,
    /// The most that the parts of interests in them take, by their addresses.
    parts: BTreeMap<usize, usize>,
    /// The end of the time of gathering, how often letters may still go at once before it, and whether some wait for it.
    until: Time,
    at_once: u32,
    waiting: bool,
}

impl Gathered {
    /// What a letter would add.
    fn reckon(&self, letter: &Routed) -> Added {
        let (alone, part) = (letter.size_without_part(), letter.body.part());
        let Some(part) = part else { return Added { bytes: alone, unpacked: alone, part: None } };
        let address = Arc::as_ptr(part).addr();
        match self.parts.get(&address) {
            Some(size) => Added { bytes: alone, unpacked: alone + size, part: None },
            None => {
                let size = part.size();
                Added { bytes: alone + size, unpacked: alone + size, part: Some((address, size)) }
            }
        }
    }

    fn has_room_for(&self, more: &Added) -> bool {
        self.letters.is_empty()
            || (self.letters.len() < MAX_LETTERS
                && self.bytes + more.bytes <= BYTES
                && self.unpacked + more.unpacked <= MAX_LETTERS_BYTES)
    }

    fn push(&mut self, letter: Routed, more: Added) {
        self.bytes += more.bytes;
        self.unpacked += more.unpacked;
        self.parts.extend(more.part);
        self.letters.push(letter);
    }

    /// When they are to go.
    fn due(&mut self, now: Time, gather: Duration) -> Time {
        if now >= self.until {
            self.until = now + gather;
            // After some that had to wait, more are likely to follow.
            self.at_once = if std::mem::take(&mut self.waiting) { 0 } else { BURST };
            return now;
        }
        self.waiting = self.at_once == 0;
        if self.waiting { self.until } else { now }
    }

    pub(crate) fn take(&mut self) -> Letters {
        self.at_once = self.at_once.saturating_sub(1);
        (self.bytes, self.unpacked) = (0, 0);
        self.parts.clear();
        Letters(std::mem::take(&mut self.letters))
    }
}

/// What a letter adds to others.
struct Added {
    /// The most that it adds to what is written. A part of an interest that others say too is written once.
    bytes: usize,
    /// The most that it would add with all that it says in it.
    unpacked: usize,
    /// The part of an interest in it, if it is the first that has it: its address, and the most that it takes.
    part: Option<(usize, usize)>,
}

impl Broker {
    /// Sends a letter towards its destination. Without a next hop it is dropped: its source sends it again.
    pub(crate) fn pass_on(&mut self, letter: Routed, out: &mut Vec<Output>) {
        let route = self.topology.route(letter.destination.broker);
        let Some(id) = route.and_then(|route| self.links.to(route.next_hop)) else { return };
        let Some(gathered) = self.links.get(id).map(|link| &link.letters) else { return };
        let mut more = gathered.reckon(&letter);
        if !gathered.has_room_for(&more) {
            self.send_letters(id, out);
            more = Gathered::default().reckon(&letter);
        }
        if let Some(link) = self.links.get_mut(id) {
            link.letters.push(letter, more);
            self.unsettled.letters.insert(id);
        }
    }

    /// Sends what has gathered for a link.
    pub(crate) fn send_letters(&mut self, id: LinkId, out: &mut Vec<Output>) {
        let letters = self.links.get_mut(id).map(|link| link.letters.take()).unwrap_or_default();
        if !letters.0.is_empty() {
            self.send(id, Message::Routed(letters), out);
        }
    }

    /// Sends what has gathered for links, or leaves it for a moment for what follows.
    pub(crate) fn send_gathered(&mut self, out: &mut Vec<Output>) {
        let (now, gather) = (self.now, self.config.gather);
        while let Some(id) = self.unsettled.letters.pop_first() {
            let Some(due) = self.links.get_mut(id).map(|link| link.letters.due(now, gather)) else { continue };
            if due <= now {
                self.timers.set(Timer::PassOn(id), None);
                self.send_letters(id, out);
            } else {
                self.timers.set(Timer::PassOn(id), Some(due));
            }
        }
    }

    pub(crate) fn on_letters(&mut self, letters: Letters, out: &mut Vec<Output>) {
        for mut letter in letters.0 {
            if letter.destination.broker == self.identity.id {
                // What claims to be from here may be from anywhere; who has passed it on is not to blame.
                if letter.source.broker != self.identity.id {
                    self.on_letter(letter, out);
                }
            } else if letter.passed < MOST_PASSED {
                letter.passed += 1;
                self.pass_on(letter, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnnouncedFilter, BrokerId, Digest, Interest, InterestPart, Life, Payload, RoutedBody};

    const GATHER: Duration = Duration::from_micros(10);

    fn letter(body: RoutedBody) -> Routed {
        let life = |broker| Life { broker: BrokerId(broker), incarnation: 1 };
        Routed { source: life(1), destination: life(2), passed: 0, body }
    }

    fn ack(received: u64) -> Routed {
        letter(RoutedBody::Ack { epoch: 1, received })
    }

    fn interest(part: &Arc<InterestPart>) -> Routed {
        let payload = Payload::Interest(Interest { scope_version: 1, part: part.clone() });
        letter(RoutedBody::Data { epoch: 1, sequence: 1, payload })
    }

    fn part(bytes: usize) -> Arc<InterestPart> {
        let (added, removed) = (vec![AnnouncedFilter(vec![0; bytes].into())], Vec::new());
        Arc::new(InterestPart { version: 1, whole: true, added, removed, last: true, digest: Digest::default() })
    }

    /// Adds a letter at a time, and says how many go then, or when they will.
    fn add(gathered: &mut Gathered, now: u64) -> Result<usize, u64> {
        let more = gathered.reckon(&ack(now));
        gathered.push(ack(now), more);
        let due = gathered.due(Time(now), GATHER);
        if due <= Time(now) { Ok(gathered.take().0.len()) } else { Err(due.0) }
    }

    #[test]
    fn few_go_at_once_and_many_together() {
        let mut gathered = Gathered::default();
        for now in 100..100 + u64::from(BURST) {
            assert_eq!(add(&mut gathered, now), Ok(1));
        }
        assert_eq!([104, 105, 109].map(|now| add(&mut gathered, now)), [Err(110); 3]);
        assert_eq!((gathered.due(Time(110), GATHER), gathered.take().0.len()), (Time(110), 3));
        // More follow, and wait; when none has had to, all is as it was.
        assert_eq!([111, 119].map(|now| add(&mut gathered, now)), [Err(120); 2]);
        assert_eq!(add(&mut gathered, 120), Ok(3));
        assert_eq!([131, 132].map(|now| add(&mut gathered, now)), [Ok(1); 2]);
    }

    /// How many of these, over and over, are added before there is no room.
    fn fill(gathered: &mut Gathered, letters: &[Routed]) -> usize {
        let mut letters = letters.iter().cycle().take(2 * MAX_LETTERS);
        let fits = |letter: &&Routed| {
            let more = gathered.reckon(letter);
            let fits = gathered.has_room_for(&more);
            if fits {
                gathered.push((*letter).clone(), more);
            }
            fits
        };
        letters.by_ref().take_while(fits).count()
    }

    #[test]
    fn what_goes_together_is_bounded_and_the_same_counts_once() {
        let (mut gathered, third) = (Gathered::default(), BYTES / 3);
        assert_eq!(fill(&mut gathered, &[interest(&part(2 * BYTES))]), 1, "a single one may be large");
        gathered.take();
        // Each of the same two is written once, but what they say is all reckoned with.
        let two = [interest(&part(third)), interest(&part(third - 1_000))];
        assert_eq!(fill(&mut gathered, &two), 12);
        gathered.take();
        let many: Vec<Routed> = (0..9).map(|_| interest(&part(third))).collect();
        assert_eq!(fill(&mut gathered, &many), 2);
        gathered.take();
        assert_eq!(fill(&mut gathered, &[ack(1)]), MAX_LETTERS);
    }
}
