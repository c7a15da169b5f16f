//! Receipts on their way to publications: all in one slab, in which a publication has a place until it is answered and either
//! awaited or dropped.

use crate::ClientError;
use enroute_broker::Receipt;
use std::task::{Context, Poll, Waker};

/// So many places are kept when all are free.
const KEPT: usize = 16 * 1024;

/// Where the receipt of a publication will be. Whoever has asked has one, and whoever will answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

/// All publications that are not answered or whose answer has not been taken.
#[derive(Default)]
pub(crate) struct Receipts {
    places: Vec<Place>,
    free: Vec<u32>,
}

enum Place {
    Free,
    /// Not answered; whom to wake then.
    Open(Option<Waker>),
    /// Not answered, and nobody minds.
    Dropped,
    Answered(Result<Receipt, ClientError>),
}

impl Receipts {
    /// A place for one more.
    pub(crate) fn open(&mut self) -> Ticket {
        let place = Place::Open(None);
        match self.free.pop() {
            Some(free) => {
                self.places[free as usize] = place;
                Ticket(free)
            }
            None => {
                self.places.push(place);
                Ticket((self.places.len() - 1) as u32)
            }
        }
    }

    /// The answer has come; gives whoever is to be woken.
    #[must_use]
    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Result<Receipt, ClientError>) -> Option<Waker> {
        let place = &mut self.places[ticket.0 as usize];
        match std::mem::replace(place, Place::Answered(answer)) {
            Place::Open(waker) => waker,
            Place::Dropped => {
                self.release(ticket);
                None
            }
            Place::Free | Place::Answered(_) => unreachable!("a publication is answered once"),
        }
    }

    /// Answers all that are open; gives whoever is to be woken.
    #[must_use]
    pub(crate) fn answer_all(&mut self, error: &ClientError) -> Vec<Waker> {
        let open = |(_, place): &(u32, &Place)| matches!(place, Place::Open(_) | Place::Dropped);
        let open: Vec<Ticket> = (0..).zip(&self.places).filter(open).map(|(place, _)| Ticket(place)).collect();
        open.into_iter().filter_map(|ticket| self.answer(ticket, Err(error.clone()))).collect()
    }

    /// Takes the answer, which frees the place.
    pub(crate) fn poll(&mut self, ticket: Ticket, context: &Context<'_>) -> Poll<Result<Receipt, ClientError>> {
        let place = &mut self.places[ticket.0 as usize];
        match std::mem::replace(place, Place::Free) {
            Place::Answered(answer) => {
                self.release(ticket);
                Poll::Ready(answer)
            }
            Place::Open(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(context.waker()));
                *place = Place::Open(Some(waker.unwrap_or_else(|| context.waker().clone())));
                Poll::Pending
            }
            Place::Free | Place::Dropped => unreachable!("whoever polls has not dropped its ticket"),
        }
    }

    /// Nobody will ask for the answer.
    pub(crate) fn drop_ticket(&mut self, ticket: Ticket) {
        match &mut self.places[ticket.0 as usize] {
            Place::Answered(_) => self.release(ticket),
            place => *place = Place::Dropped,
        }
    }

    fn release(&mut self, ticket: Ticket) {
        self.places[ticket.0 as usize] = Place::Free;
        self.free.push(ticket.0);
        if self.free.len() == self.places.len() && self.free.len() > KEPT {
            *self = Receipts::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_broker::{BrokerId, EventId};

    fn receipt(sequence: u64) -> Result<Receipt, ClientError> {
        let id = EventId { origin: BrokerId(1), incarnation: 1, sequence };
        Ok(Receipt { id, destinations: 0, complete: true })
    }

    #[test]
    fn places_are_used_again_whoever_leaves_first() {
        let mut receipts = Receipts::default();
        let context = Context::from_waker(Waker::noop());
        for round in 0..10 {
            let [first, second, third] = [0; 3].map(|_| receipts.open());
            assert!(receipts.poll(first, &context).is_pending());
            receipts.drop_ticket(second);
            assert!(receipts.answer(second, receipt(2)).is_none());
            assert!(receipts.answer(first, receipt(round)).is_some_and(|waker| waker.will_wake(Waker::noop())));
            assert!(receipts.answer(third, receipt(3)).is_none(), "nobody has waited yet");
            assert_eq!(receipts.poll(first, &context), Poll::Ready(receipt(round)));
            receipts.drop_ticket(third);
            assert_eq!((receipts.places.len(), receipts.free.len()), (3, 3));
        }
    }

    #[test]
    fn a_crowd_leaves_no_memory_behind() {
        let mut receipts = Receipts::default();
        let tickets: Vec<Ticket> = (0..=KEPT).map(|_| receipts.open()).collect();
        let (kept, dropped) = tickets.split_at(KEPT / 2);
        dropped.iter().for_each(|&ticket| receipts.drop_ticket(ticket));
        assert!(receipts.answer_all(&ClientError::disconnected("over")).is_empty());
        for &ticket in kept {
            let answer = receipts.poll(ticket, &Context::from_waker(Waker::noop()));
            assert_eq!(answer, Poll::Ready(Err(ClientError::disconnected("over"))));
        }
        assert_eq!(receipts.places.capacity(), 0);
    }
}
