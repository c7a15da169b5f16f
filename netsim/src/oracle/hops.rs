//! Events between leaves and their parents.

use super::{Oracle, Publication};
use enroute_broker::{EventFrame, EventId, Time};

impl Oracle {
    /// An event goes from a leaf to its parent, or the other way.
    pub(crate) fn hop_sent(&mut self, hop: [usize; 2], up: bool, frame: &EventFrame, now: Time) {
        if !up && let Err(complaint) = self.custody.goes_down(hop, frame) {
            self.complain(complaint);
        }
        let Some(number) = self.number(frame.id, &frame.event) else {
            return self.complain(format!("a copy of event {} that nobody published", frame.id));
        };
        if let Some(publication) = self.moved(number, now) {
            publication.crossings.push(hop);
            publication.came_up_to.take_if(|&mut at| up && at == hop[0]);
        }
    }

    /// An event has come over a link between a leaf and its parent.
    pub(crate) fn hop_arrived(&mut self, at: usize, up: bool, frame: &EventFrame, now: Time) {
        self.custody.hop_arrived(frame);
        if let Some(publication) = self.known(frame.id, now) {
            publication.visited.insert(at);
            if up {
                publication.came_up_to = Some(at);
            }
        }
    }

    /// An event goes down with a link between a leaf and its parent.
    pub(crate) fn hop_lost(&mut self, up: bool, frame: &EventFrame, now: Time) {
        if let Some(publication) = self.known(frame.id, now) {
            publication.lost_up |= up;
            publication.lost_down |= !up;
        }
    }

    /// An event that an uplink had not begun to send goes back to the leaf, and will go up by the next one.
    pub(crate) fn hop_returned(&mut self, from: usize, frame: &EventFrame, now: Time) {
        if let Some(publication) = self.known(frame.id, now)
            && let Some(place) = publication.crossings.iter().rposition(|hop| hop[0] == from)
        {
            publication.crossings.remove(place);
            publication.came_up_to = Some(from);
        }
    }

    fn known(&mut self, id: EventId, now: Time) -> Option<&mut Publication> {
        let number = *self.numbers.get(&id)?;
        self.moved(number, now)
    }
}
