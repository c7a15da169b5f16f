//! What came of a run, in the simulator's form.

use crate::run::Run;
use enroute_netsim::{ClientLine, LinkLine, Report, TableLine, Verdict};

impl Run {
    /// Everything counted. What only the simulator can count is left at nothing.
    pub(crate) fn report(&self) -> Report {
        let names: Vec<&str> = (0..self.network.brokers()).map(|broker| self.network.name(broker)).collect();
        let traffic = self.network.traffic();
        let [events, control] = traffic.sums();
        let links = self
            .network
            .links()
            .map(|ends| LinkLine { ends: ends.map(|end| names[end].to_owned()), tally: traffic.tally(ends) });
        let tables = self.statuses.iter().map(|(&broker, status)| TableLine {
            broker: names[broker].to_owned(),
            subscriptions: status.broker.subscriptions,
            forest_nodes: status.broker.forest_nodes,
            forest_roots: status.broker.forest_roots,
            interest: status.broker.brokers.iter().map(|broker| broker.interest).sum(),
            announced: status.broker.brokers.iter().map(|broker| broker.announced).sum(),
        });
        let (links, tables) = (links.collect(), tables.collect());
        self.books.with(|oracle| Report {
            real: true,
            name: self.scenario.name.clone(),
            seed: self.seed,
            brokers: names.len(),
            virtual_time_us: self.started.elapsed().as_micros() as u64,
            publications: oracle.publications(),
            refused: oracle.refused,
            unanswered: oracle.unanswered,
            partial: oracle.partial,
            total: oracle.book.total(),
            clients: self.client_lines(&names, oracle.book.verdicts()),
            links,
            events,
            control: [("all kinds", control)].into(),
            tables,
            settles: self.settles.clone(),
            complaints: oracle.book.complaints().to_vec(),
            ..Report::default()
        })
    }

    fn client_lines(&self, names: &[&str], verdicts: &[Verdict]) -> Vec<ClientLine> {
        let lines = self.people.iter().zip(verdicts).map(|(person, &verdict)| {
            let clients = self.statuses.get(&person.home).map(|status| status.clients.as_slice()).unwrap_or_default();
            let peer_id = person.session.as_ref().map(|session| &session.peer_id);
            let dropped = clients.iter().find(|client| Some(&client.peer_id) == peer_id).map_or(0, |it| it.dropped);
            ClientLine { client: person.name.clone(), broker: names[person.home].to_owned(), dropped, verdict }
        });
        lines.collect()
    }
}
