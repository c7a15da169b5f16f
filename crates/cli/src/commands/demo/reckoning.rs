//! What should happen, reckoned without any broker: each event against each filter, and the paths to those who want it.

use super::scenario::{AIRPORTS, BROKERS, Entry, LINKS, SUBSCRIPTIONS};
use enroute_filter::Filter;
use std::collections::BTreeMap;

/// `routes[a][b]` is the neighbour to which broker a sends what is for broker b; for a itself it is a.
pub(super) type Routes = [[usize; BROKERS.len()]; BROKERS.len()];

/// How many events go over each link, by sender and receiver.
pub(super) type Crossings = BTreeMap<(usize, usize), u64>;

/// What a run should come to.
pub(super) struct Expected {
    /// Events for each subscription.
    pub(super) received: [u64; SUBSCRIPTIONS.len()],
    /// Events over each link in each direction: for every event the union of the paths to the brokers that want it.
    pub(super) crossings: Crossings,
}

/// Reckons both. The last events of the airports, which all subscribers want, count as crossings too.
pub(super) fn expect(entries: &[Entry], filters: &[Filter; SUBSCRIPTIONS.len()], routes: &Routes) -> Expected {
    let mut expected = Expected { received: [0; SUBSCRIPTIONS.len()], crossings: Crossings::new() };
    for entry in entries {
        let mut wanted = [false; BROKERS.len()];
        for (index, filter) in filters.iter().enumerate() {
            if filter.matches(&entry.event) {
                expected.received[index] += 1;
                wanted[SUBSCRIPTIONS[index].0] = true;
            }
        }
        cross(entry.airport, &wanted, routes, &mut expected.crossings);
    }
    let subscribers = std::array::from_fn(|broker| SUBSCRIPTIONS.iter().any(|&(at, _)| at == broker));
    for airport in AIRPORTS {
        cross(airport, &subscribers, routes, &mut expected.crossings);
    }
    expected
}

/// Adds the links on the paths from `origin` to all who want an event, each once.
fn cross(origin: usize, wanted: &[bool; BROKERS.len()], routes: &Routes, crossings: &mut Crossings) {
    let mut links = Vec::new();
    for destination in (0..BROKERS.len()).filter(|&broker| wanted[broker]) {
        let mut at = origin;
        while at != destination {
            let next = routes[at][destination];
            if !links.contains(&(at, next)) {
                links.push((at, next));
            }
            at = next;
        }
    }
    for link in links {
        *crossings.entry(link).or_default() += 1;
    }
}

/// Whether every route is over links that exist and no longer than it must be. Where several paths are equally short the
/// brokers choose; that their choice is a shortest path is reckoned here from [`LINKS`] alone.
pub(super) fn are_shortest(routes: &Routes) -> bool {
    (0..BROKERS.len()).all(|destination| {
        let distances = distances_to(destination);
        (0..BROKERS.len()).filter(|&at| at != destination).all(|at| {
            let next = routes[at][destination];
            neighbours(at).any(|neighbour| neighbour == next) && distances[next] + 1 == distances[at]
        })
    })
}

fn distances_to(destination: usize) -> [usize; BROKERS.len()] {
    let mut distances = [usize::MAX; BROKERS.len()];
    distances[destination] = 0;
    let mut reached = vec![destination];
    let mut position = 0;
    while let Some(&at) = reached.get(position) {
        position += 1;
        for neighbour in neighbours(at) {
            if distances[neighbour] == usize::MAX {
                distances[neighbour] = distances[at] + 1;
                reached.push(neighbour);
            }
        }
    }
    distances
}

fn neighbours(broker: usize) -> impl Iterator<Item = usize> {
    LINKS.into_iter().filter_map(move |(a, b)| match broker {
        _ if a == broker => Some(b),
        _ if b == broker => Some(a),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortest routes over [`LINKS`]; of equally short ones the first.
    fn routes() -> Routes {
        let mut routes = [[0; BROKERS.len()]; BROKERS.len()];
        for destination in 0..BROKERS.len() {
            let distances = distances_to(destination);
            for (at, row) in routes.iter_mut().enumerate() {
                let nearer = neighbours(at).find(|&neighbour| distances[neighbour] < distances[at]);
                row[destination] = nearer.unwrap_or(at);
            }
        }
        routes
    }

    #[test]
    fn shortest_routes_are_told_from_others() {
        let mut routes = routes();
        assert!(are_shortest(&routes));
        // From EWR to the east by way of the hub.
        routes[1][2] = 0;
        assert!(!are_shortest(&routes));
    }

    #[test]
    fn paths_that_share_a_link_cross_it_once() {
        let mut crossings = Crossings::new();
        let mut wanted = [false; BROKERS.len()];
        // From EWR both west and south are reached by way of the hub.
        let mut routes = routes();
        routes[1][4] = 0;
        routes[0][4] = 5;
        routes[1][5] = 0;
        assert!(are_shortest(&routes));
        wanted[4] = true;
        wanted[5] = true;
        cross(1, &wanted, &routes, &mut crossings);
        assert_eq!(crossings, Crossings::from([((1, 0), 1), ((0, 5), 1), ((5, 4), 1)]));
    }

    #[test]
    fn nobody_interested_no_crossing() {
        let mut crossings = Crossings::new();
        cross(1, &[false; BROKERS.len()], &routes(), &mut crossings);
        assert!(crossings.is_empty());
    }
}
