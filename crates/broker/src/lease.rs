//! Quenching, the leaf's side: what others want of the events that may be published here and below, and the lease by which
//! that can be relied on. See [`quench`](crate::quench) for the other side.

use crate::broker::Broker;
use crate::quench::Owed;
use crate::received::{Numbered, Received, Taken};
use crate::timers::Timer;
use crate::{AnnouncedFilter, CloseReason, Interest, Interested, LeafMessage, LinkId, Output, Time};
use enroute_filter::{Event, Filter};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
use std::collections::VecDeque;
use std::time::Duration;

/// Questions for a lease that may be unanswered at a time.
const QUESTIONS: usize = 8;

/// What everybody but those here and below wants, as the parent tells it.
#[derive(Default)]
pub(crate) struct Others {
    interest: Received,
    filters: Numbered,
    matcher: Enindex,
    scratch: Scratch,
    last_id: u64,
    /// Questions for a lease that are not answered: their numbers, and when they were sent.
    questions: VecDeque<(u64, Time)>,
    last_question: u64,
    /// Until when the interest can be relied on.
    pub(crate) lease_until: Time,
}

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Others").field("filters", &self.filters.len()).field("lease_until", &self.lease_until).finish()
    }
}

impl Others {
    /// All filters.
    pub(crate) fn filters(&self) -> impl Iterator<Item = (&AnnouncedFilter, SubscriptionId)> {
        self.filters.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether any of them wants an event.
    pub(crate) fn want(&mut self, event: &Event) -> bool {
        let mut owners = Vec::new();
        self.matcher.interested(event, &mut self.scratch, &mut owners);
        !owners.is_empty()
    }

    /// Nothing is published here or below any more.
    pub(crate) fn clear(&mut self) {
        let Others { last_id, last_question, .. } = *self;
        *self = Others { last_id, last_question, ..Others::default() };
    }

    /// The parent is gone: a step that has not ended will not end.
    pub(crate) fn unattach(&mut self) {
        self.interest.unstage();
        self.interest.scope_version = 0;
        self.questions.clear();
    }
}

impl Broker {
    pub(crate) fn on_interest_of_others(&mut self, link: LinkId, interest: Interest, out: &mut Vec<Output>) {
        // Not acknowledged either: the parent forgets that step when it hears of the scope, and counts anew.
        if self.scope.is_forgotten(interest.scope_version) {
            return;
        }
        let Interest { scope_version, part } = interest;
        let (step, digest) = (part.version, part.digest);
        // What stands for too much to be told is one filter itself.
        let limit = self.config.leaf_table.max(1) as usize;
        let Some(Others { interest: received, filters, last_id, matcher, .. }) =
            self.uplink.as_mut().map(|it| &mut it.others)
        else {
            return;
        };
        let right = match received.take(part, limit, filters.len(), |filter| filters.contains(filter)) {
            Taken::Part => return,
            Taken::TooMany => false,
            Taken::Step(changed) => {
                let changes = filters.change(changed, last_id);
                received.applied(scope_version, digest, &changes);
                let right = received.right;
                // What is held stays for the next parent, be it right or not: all that goes by it must go by the same.
                for (filter, id) in &changes.added {
                    matcher.insert(*id, Owner(0), &Filter::from(filter.or_always()));
                }
                for (_, id) in &changes.removed {
                    matcher.remove(*id);
                }
                self.beyond_interest_changed(&changes, out);
                right
            }
        };
        if !right {
            let what = "an interest that does not come out right, or is more than this leaf can hold";
            return self.close(link, CloseReason::Violation(what.into()), out);
        }
        self.owe(Owed::Uplink { link, step }, out);
    }

    /// Asks for a lease, and goes on asking.
    pub(crate) fn renew(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        let publishes = !self.scope.is_nobody();
        let Some(uplink) = self.uplink.as_mut().filter(|uplink| publishes && uplink.attached().is_some()) else {
            return;
        };
        let others = &mut uplink.others;
        others.last_question += 1;
        let number = others.last_question;
        others.questions.push_back((number, now));
        if others.questions.len() > QUESTIONS {
            others.questions.pop_front();
        }
        self.send_up(LeafMessage::Renew { number }, out);
        self.timers.set(Timer::Renew, Some(now + self.config.lease / 4));
    }

    /// The interest can be relied on, from the time that the question was sent: the parent reckons from later.
    pub(crate) fn on_lease(&mut self, number: u64, lasts_us: u64, out: &mut Vec<Output>) {
        let scope_version = self.scope.version();
        let Some(others) = self.uplink.as_mut().map(|uplink| &mut uplink.others) else { return };
        let Some(place) = others.questions.iter().position(|&(asked, _)| asked == number) else { return };
        let Some((_, sent)) = others.questions.drain(..=place).next_back() else { return };
        let until = sent + Duration::from_micros(lasts_us).min(self.config.lease_margin);
        if until <= self.now || others.interest.scope_version != scope_version {
            return;
        }
        let renewed = std::mem::replace(&mut others.lease_until, until) > self.now;
        self.timers.set(Timer::LeaseEnd, Some(until));
        if renewed {
            self.judge_leases(true, out);
        } else {
            self.view_changed();
        }
    }

    /// The interest cannot be relied on any more, until the next lease.
    pub(crate) fn end_lease(&mut self) {
        if let Some(uplink) = &mut self.uplink {
            uplink.others.lease_until = Time::default();
            self.timers.set(Timer::LeaseEnd, None);
            self.view_changed();
        }
    }

    /// Whether this leaf knows what others want of what is published here and below.
    pub(crate) fn is_leased(&self) -> bool {
        self.uplink.as_ref().is_some_and(|uplink| uplink.others.lease_until > self.now)
    }

    /// Whether anybody wants an event, should it be published here now: a client or leaf here, or somebody beyond. `now` is
    /// as for [`Broker::handle`].
    ///
    /// Costs what matching the event costs.
    pub fn interested(&mut self, event: &Event, now: Time) -> Interested {
        self.now = self.now.max(now);
        let wanted = self.clients.want(event)
            || match &mut self.uplink {
                Some(uplink) => uplink.others.lease_until > self.now && uplink.others.want(event),
                None => self.remote.want(event, &mut self.owners),
            };
        if wanted {
            Interested::Yes
        } else if self.has_event_in_scope(event) && self.view_is_complete() {
            Interested::No
        } else {
            Interested::Unknown
        }
    }
}
