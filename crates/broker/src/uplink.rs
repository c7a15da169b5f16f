//! The uplink of a leaf broker: where it hangs, and what it says there.
//!
//! A leaf has one uplink at a time. It asks to be taken in, gets the parent's path to the core, and tells what it and all
//! below it want and may publish. If the parent has lost its path, the leaf waits a little for another one; a path that leads
//! through the leaf itself it does not accept. What is to go up while there is no uplink is kept.

use crate::broker::Broker;
use crate::kept::Kept;
use crate::lease::Others;
use crate::links::LinkCounts;
use crate::timers::Timer;
use crate::told::Told;
use crate::{
    Attach, BrokerId, CloseReason, EventFrame, EventId, Interest, LeafMessage, LinkId, MAX_PATH, Message, Neighbour,
    Output, Scope, Time,
};
use enroute_filter::Event;
use smallvec::smallvec;
use std::sync::Arc;
use std::time::Duration;

/// How long changes gather when much is under way that the parent has not acknowledged. It may be waiting for a broker far away,
/// and meanwhile leaves below must not go without what they want.
const GATHERING: Duration = Duration::from_millis(250);

/// The parent, or one that may become it.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) link: LinkId,
    pub(crate) id: BrokerId,
    pub(crate) peer_id: Arc<str>,
    /// Whether it has taken this leaf in.
    attached: bool,
    /// Its path to the core, itself first; empty while it has none.
    path: Vec<BrokerId>,
    /// When the link came up.
    pub(crate) since: Time,
    pub(crate) counts: LinkCounts,
}

/// What a leaf broker knows of the world above.
#[derive(Debug)]
pub(crate) struct Uplink {
    pub(crate) parent: Option<Parent>,
    /// Whether there has been no way up for so long that answers do not wait for one any more.
    pub(crate) cut_off: bool,
    /// Counts the attachments.
    epoch: u64,
    /// The last path of the last attachment.
    previous: Vec<BrokerId>,
    /// What the parent has been told of the own interest.
    pub(crate) told: Told,
    /// When it was told the last step.
    told_at: Time,
    /// At how many brokers the interest that was last acknowledged is in force.
    pub(crate) brokers: u32,
    /// Which had not acknowledged that.
    pub(crate) missing: Vec<BrokerId>,
    pub(crate) others: Others,
    pub(crate) kept: Kept,
}

impl Uplink {
    /// None yet.
    pub(crate) fn new() -> Uplink {
        let mut told = Told::default();
        told.tell_whole(0);
        Uplink {
            parent: None,
            cut_off: false,
            epoch: 0,
            previous: Vec::new(),
            told,
            told_at: Time::default(),
            brokers: 0,
            missing: Vec::new(),
            others: Others::default(),
            kept: Kept::default(),
        }
    }

    /// The parent, if it has taken this leaf in.
    pub(crate) fn attached(&self) -> Option<&Parent> {
        self.parent.as_ref().filter(|parent| parent.attached)
    }

    /// The parent's path to the core; empty if there is none.
    pub(crate) fn path(&self) -> &[BrokerId] {
        self.attached().map_or(&[], |parent| &parent.path)
    }

    /// Until when the leaf may rely on what it holds of others' interest; long ago if it may not.
    pub(crate) fn lease_until(&self) -> Time {
        self.others.lease_until
    }

    fn is_over(&self, link: LinkId) -> bool {
        self.parent.as_ref().is_some_and(|parent| parent.link == link)
    }
}

impl Broker {
    /// A dial to an uplink has succeeded: asks to be taken in, if no other one is in use.
    pub(crate) fn on_parent_up(&mut self, link: LinkId, neighbour: Neighbour, out: &mut Vec<Output>) {
        let reason = match &self.uplink {
            None => Some(CloseReason::Violation("a core broker has no uplink".into())),
            Some(_) if neighbour.broker == self.identity.id => Some(CloseReason::Oneself),
            Some(_) if BrokerId::of_peer(&neighbour.peer_id) != neighbour.broker => {
                Some(CloseReason::Violation("a broker id that is not the hash of its peer id".into()))
            }
            Some(uplink) if uplink.parent.is_some() => Some(CloseReason::Duplicate),
            Some(_) => None,
        };
        if let Some(reason) = reason {
            out.push(Output::CloseLink { link, reason });
            return;
        }
        let table = self.config.leaf_table;
        let Some(uplink) = &mut self.uplink else { return };
        uplink.epoch += 1;
        let attach = Attach { epoch: uplink.epoch, previous: uplink.previous.clone(), table };
        let (id, peer_id) = (neighbour.broker, neighbour.peer_id);
        let (path, counts) = (Vec::new(), LinkCounts::default());
        uplink.parent = Some(Parent { link, id, peer_id, attached: false, path, since: self.now, counts });
        self.send_up(LeafMessage::Attach(attach), out);
    }

    pub(crate) fn send_up(&mut self, message: LeafMessage, out: &mut Vec<Output>) {
        if let Some(parent) = self.uplink.as_mut().and_then(|uplink| uplink.parent.as_mut()) {
            parent.counts.control_sent += 1;
            out.push(Output::Send { link: parent.link, message: Message::Leaf(message) });
        }
    }

    /// Whether a link is the uplink.
    pub(crate) fn is_uplink(&self, link: LinkId) -> bool {
        self.uplink.as_ref().is_some_and(|uplink| uplink.is_over(link))
    }

    pub(crate) fn on_message_from_parent(&mut self, link: LinkId, message: LeafMessage, out: &mut Vec<Output>) {
        let Some(parent) = self.uplink.as_mut().and_then(|uplink| uplink.parent.as_mut()) else { return };
        parent.counts.control_received += 1;
        match message {
            LeafMessage::Path(path) => self.on_path(link, path, out),
            _ if !parent.attached => {
                let what = "a parent that speaks before it takes the leaf in";
                self.close(link, CloseReason::Violation(what.into()), out);
            }
            LeafMessage::Interest(interest) => self.on_interest_of_others(link, interest, out),
            LeafMessage::Held { step, brokers, missing } => self.on_held(step, brokers, missing, out),
            LeafMessage::Lease { number, lasts_us } => self.on_lease(number, lasts_us, out),
            LeafMessage::Revoke => self.end_lease(),
            LeafMessage::Detach(detach) if detach.path.len() <= MAX_PATH => self.on_detach(detach, false, out),
            LeafMessage::Detach(_) | LeafMessage::Attach(_) | LeafMessage::Scope { .. } | LeafMessage::Renew { .. } => {
                let what = "a parent that says what only a leaf may say, or too much";
                self.close(link, CloseReason::Violation(what.into()), out);
            }
        }
    }

    fn on_path(&mut self, link: LinkId, path: Vec<BrokerId>, out: &mut Vec<Output>) {
        let own = self.identity.id;
        let Some(uplink) = &mut self.uplink else { return };
        let Some(parent) = &mut uplink.parent else { return };
        let refusal = if path.len() > MAX_PATH || path.first().is_some_and(|&first| first != parent.id) {
            Some(CloseReason::Violation("a path that is too long or does not begin with its broker".into()))
        } else if path.contains(&own) {
            Some(CloseReason::Cycle)
        } else if path.is_empty() && !parent.attached {
            Some(CloseReason::NoPath)
        } else {
            None
        };
        if let Some(reason) = refusal {
            return self.close(link, reason, out);
        }
        let lost = path.is_empty();
        if !lost {
            uplink.previous = path.clone();
            uplink.cut_off = false;
        }
        parent.path = path;
        if !std::mem::replace(&mut parent.attached, true) {
            self.on_attached(out);
        }
        let deadline = lost.then_some(self.now + self.config.path_wait);
        self.timers.set(Timer::Path, deadline);
        self.tell_path(out);
    }

    /// A parent has taken this leaf in: it is told everything.
    fn on_attached(&mut self, out: &mut Vec<Output>) {
        self.announce_up(out);
        if !self.scope.is_nobody() {
            self.tell_scope_up(out);
        }
        self.end_start();
        self.view_changed();
        self.unsettled.scopes = true;
        self.time_publications();
    }

    /// There has been no way up for long enough: another parent than the present one may have a path, and whoever waits for an
    /// answer is told that there is none.
    pub(crate) fn on_path_overdue(&mut self, out: &mut Vec<Output>) {
        let Some(uplink) = &mut self.uplink else { return };
        uplink.cut_off = true;
        if let Some(link) = uplink.attached().map(|parent| parent.link) {
            self.close(link, CloseReason::NoPath, out);
        }
        self.check_waits(out);
    }

    /// The uplink is gone. What others want stays until the next parent says it anew, but is not relied on.
    pub(crate) fn forget_parent(&mut self, out: &mut Vec<Output>) {
        let Some(uplink) = &mut self.uplink else { return };
        let had_path = !uplink.path().is_empty();
        uplink.parent = None;
        uplink.told = Told::default();
        uplink.told.tell_whole(0);
        uplink.missing.clear();
        uplink.others.unattach();
        self.timers.set(Timer::Renew, None);
        self.end_lease();
        self.view_changed();
        self.unsettled.scopes = true;
        if had_path {
            self.timers.set(Timer::Path, Some(self.now + self.config.path_wait));
            self.tell_path(out);
        }
    }

    /// Tells the parent the next step of the own interest, if there is one and not too much is under way.
    pub(crate) fn announce_up(&mut self, out: &mut Vec<Output>) {
        let Some(uplink) = &mut self.uplink else { return };
        if uplink.attached().is_none() {
            return;
        }
        let number = uplink.told.next_number();
        let pressing_at = uplink.told_at + GATHERING;
        let pressing = pressing_at <= self.now;
        let Some(step) = uplink.told.next_step(number, pressing, || self.announcements.whole()) else {
            let gathers = !uplink.told.all_sent() && !pressing;
            return self.timers.set(Timer::AnnounceUp, gathers.then_some(pressing_at));
        };
        uplink.told.sent(number, step.since);
        uplink.told_at = self.now;
        let scope_version = uplink.told.scope_version;
        for part in step.parts {
            self.send_up(LeafMessage::Interest(Interest::new(scope_version, part)), out);
        }
    }

    /// The parent, and all beyond that it concerns, hold a step of the own interest.
    fn on_held(&mut self, step: u64, brokers: u32, missing: Vec<BrokerId>, out: &mut Vec<Output>) {
        let Some(uplink) = &mut self.uplink else { return };
        uplink.told.acknowledge(step);
        uplink.brokers = brokers.saturating_add(1);
        uplink.missing = missing;
        let parent = uplink.parent.as_ref().map(|parent| parent.id);
        self.announce_up(out);
        parent.into_iter().for_each(|parent| self.end_waits_for(parent, out));
    }

    /// Some broker beyond had not acknowledged the interest in time: asks once more, with the whole of it.
    pub(crate) fn ask_again_if_partial(&mut self, out: &mut Vec<Output>) {
        if let Some(uplink) = &mut self.uplink
            && !std::mem::take(&mut uplink.missing).is_empty()
        {
            uplink.told.tell_whole(0);
            self.announce_up(out);
        }
    }

    /// Acknowledges a step of others' interest, if it came over the present uplink.
    pub(crate) fn send_held_up(&mut self, link: LinkId, step: u64, out: &mut Vec<Output>) {
        if self.is_uplink(link) {
            self.send_up(LeafMessage::Held { step, brokers: 0, missing: Vec::new() }, out);
        }
    }

    /// Tells the parent the own scope; until it answers with a lease, nothing is known of what others want of it.
    pub(crate) fn tell_scope_up(&mut self, out: &mut Vec<Output>) {
        let Some(uplink) = &mut self.uplink else { return };
        if uplink.attached().is_none() {
            return;
        }
        let (version, scope) = (self.scope.version(), self.scope.told().clone());
        let publishes = scope != Scope::Nobody;
        self.end_lease();
        self.send_up(LeafMessage::Scope { version, scope }, out);
        if publishes {
            self.renew(out);
        }
    }

    /// Sends an event up if anybody there may want it, or keeps it for the next uplink; says whether it was sent.
    pub(crate) fn send_event_up(&mut self, id: EventId, hop_limit: u16, event: &Event, out: &mut Vec<Output>) -> bool {
        let Some(uplink) = &mut self.uplink else { return false };
        let Some(parent) = uplink.parent.as_mut().filter(|parent| parent.attached) else {
            uplink.kept.push((id, hop_limit, event.clone()));
            self.bound_kept();
            return false;
        };
        let Some(hop_limit) = hop_limit.checked_sub(1) else {
            self.counters.lost_hop_limit += 1;
            return false;
        };
        if uplink.others.lease_until > self.now && !uplink.others.want(event) {
            self.counters.quenched += 1;
            return false;
        }
        parent.counts.events_sent += 1;
        self.counters.forwarded += 1;
        let frame = EventFrame { hop_limit, destinations: smallvec![parent.id], id, event: event.as_bytes().clone() };
        out.push(Output::Forward { link: parent.link, frame });
        true
    }

    /// Sends up what was kept.
    pub(crate) fn send_kept(&mut self, out: &mut Vec<Output>) {
        let take = |broker: &mut Broker| {
            let uplink = broker.uplink.as_mut().filter(|uplink| uplink.attached().is_some())?;
            uplink.kept.pop()
        };
        while let Some((id, hop_limit, event)) = take(self) {
            self.send_event_up(id, hop_limit, &event, out);
        }
    }

    /// Events of which no byte has gone up with the last uplink wait for the next one.
    pub(crate) fn keep_unsent(&mut self, unsent: Vec<EventFrame>) {
        for frame in unsent.into_iter().rev() {
            let event = Event::from_bytes(frame.event, &self.config.limits);
            if let (Some(uplink), Ok(event)) = (&mut self.uplink, event) {
                uplink.kept.put_back((frame.id, frame.hop_limit, event));
            }
        }
        self.bound_kept();
        self.view_changed();
    }

    fn bound_kept(&mut self) {
        let (events, bytes) = (self.config.kept_events, self.config.kept_bytes);
        if let Some(uplink) = &mut self.uplink {
            self.counters.lost_kept += uplink.kept.bound(events, bytes);
        }
    }
}
