//! Events between leaves and their parents.

use super::{Oracle, Publication};
use enroute_broker::{EventFrame, EventId, Time};

impl Oracle {
    /// An event goes from a leaf to its parent, or the other way.
    pub(crate) fn hop_sent(&mut self, hop: [usize; 2], up: bool, frame: &EventFrame, now: Time) {
        if !up && let Err(complaint) = self.custody.goes_down(hop, frame) {
            self.book.complain(complaint);
        }
        let Some(number) = self.number(frame.id, &frame.event) else {
            return self.book.complain(format!("a copy of event {} that nobody published", frame.id));
        };
        if let Some(publication) = self.moved(number, now) {
            publication.crossings.push(hop);
        }
    }

    /// An event has come over a link between a leaf and its parent.
    pub(crate) fn hop_arrived(&mut self, at: usize, frame: &EventFrame, now: Time) {
        self.custody.hop_arrived(frame);
        if let Some(publication) = self.known(frame.id, now) {
            publication.visited.insert(at);
        }
    }

    /// An event does not wait any more in a broker on its way up.
    pub(crate) fn wait_ended(&mut self, id: EventId, now: Time) {
        self.touch(id, now);
    }

    /// The broker has crashed in which an event waited to go up: it lived until now, for those below as for those above.
    pub(super) fn lost_waiting(&mut self, id: EventId, now: Time) {
        if let Some(publication) = self.known(id, now) {
            publication.lost_up = true;
        }
    }

    /// An event goes down with a link between a leaf and its parent. On the way up, all above go without; on the way down, the
    /// leaf and those `below` it.
    pub(crate) fn hop_lost(&mut self, up: bool, below: Vec<usize>, frame: &EventFrame, now: Time) {
        if let Some(publication) = self.known(frame.id, now) {
            if up {
                publication.lost_up = true;
            } else {
                publication.lost_down.extend(below);
            }
        }
    }

    /// An event that an uplink had not begun to send goes back to the leaf, and will go up by the next one.
    pub(crate) fn hop_returned(&mut self, from: usize, frame: &EventFrame, now: Time) {
        if let Some(publication) = self.known(frame.id, now)
            && let Some(place) = publication.crossings.iter().rposition(|hop| hop[0] == from)
        {
            publication.crossings.remove(place);
        }
    }

    fn known(&mut self, id: EventId, now: Time) -> Option<&mut Publication> {
        let number = *self.numbers.get(&id)?;
        self.moved(number, now)
    }
}
