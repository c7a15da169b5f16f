//! A bounded sample of the events that were seen, and how many of what is wanted and of what is announced match each.

use enroute_filter::{Conjunction, Event};

/// How many events are kept. Each conjunction that comes or goes is matched against all of them.
pub(crate) const MAX_EVENTS: usize = 512;

/// A new event takes an old one's place with a probability that falls with the number seen, but no further than to
/// [`MAX_EVENTS`] in so many: what has not come for long is forgotten.
const MEMORY: u64 = 1 << 18;

/// Events drawn from all that were seen, but for those long ago, each as likely as any other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    seen: u64,
    drawn: u64,
    events: Vec<Sampled>,
}

#[derive(Clone, Debug)]
struct Sampled {
    /// Without its payload.
    event: Event,
    wanted: usize,
    announced: usize,
}

impl Sample {
    /// Sees an event, and says whether it is drawn; then `count` has to tell by how many of what is wanted and of what is
    /// announced it is matched.
    pub(crate) fn observe(&mut self, event: &Event, count: impl FnOnce(&Event) -> (usize, usize)) -> bool {
        self.seen += 1;
        let place = match self.events.len() {
            MAX_EVENTS => scrambled(self.seen) % self.seen.min(MEMORY),
            not_full => not_full as u64,
        };
        if place >= MAX_EVENTS as u64 {
            return false;
        }
        // Built anew, it holds on neither to a payload nor to the message that it came in.
        let Ok(event) = event.to_builder().payload(Vec::new()).build() else { return false };
        self.drawn += 1;
        let (wanted, announced) = count(&event);
        let sampled = Sampled { event, wanted, announced };
        match self.events.get_mut(place as usize) {
            Some(old) => *old = sampled,
            None => self.events.push(sampled),
        }
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// How many events were seen.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// How many events were drawn, those included whose place others have taken since.
    pub(crate) fn drawn(&self) -> u64 {
        self.drawn
    }

    /// The share of the events that nobody wants and that what is announced matches all the same; `None` without events.
    pub(crate) fn false_interest(&self) -> Option<f64> {
        let unwanted = self.unwanted_announced().count();
        (!self.events.is_empty()).then(|| unwanted as f64 / self.events.len() as f64)
    }

    /// Takes in that something is wanted now.
    pub(crate) fn want(&mut self, conjunction: &Conjunction) {
        self.matched_by(conjunction).for_each(|sampled| sampled.wanted += 1);
    }

    /// Takes in that something is no longer wanted.
    pub(crate) fn unwant(&mut self, conjunction: &Conjunction) {
        self.matched_by(conjunction).for_each(|sampled| sampled.wanted -= 1);
    }

    /// Takes in that something is announced now.
    pub(crate) fn announce(&mut self, conjunction: &Conjunction) {
        self.matched_by(conjunction).for_each(|sampled| sampled.announced += 1);
    }

    /// Takes in that something is no longer announced.
    pub(crate) fn withdraw(&mut self, conjunction: &Conjunction) {
        self.matched_by(conjunction).for_each(|sampled| sampled.announced -= 1);
    }

    fn matched_by(&mut self, conjunction: &Conjunction) -> impl Iterator<Item = &mut Sampled> {
        self.events.iter_mut().filter(|sampled| conjunction.matches(&sampled.event))
    }

    /// The events that nobody wants and that what is announced matches all the same.
    pub(crate) fn unwanted_announced(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|sampled| sampled.wanted == 0 && sampled.announced > 0).map(|sampled| &sampled.event)
    }

    /// The events that nobody wants and that nothing announced matches.
    pub(crate) fn unwanted_kept_off(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|sampled| sampled.wanted == 0 && sampled.announced == 0).map(|sampled| &sampled.event)
    }
}

/// A number that looks random, always the same for the same number (the finaliser of SplitMix64).
fn scrambled(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
