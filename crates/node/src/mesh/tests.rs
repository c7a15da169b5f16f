//! What one broker remembers between its decisions.

use super::*;
use enroute_broker::{LinkEnd, Version};

const BOUNDS: Bounds = Bounds { min: 2, max: 4 };

/// A broker and what it is told of others.
struct Scene {
    mesh: Mesh,
    now: Instant,
    known: BTreeMap<BrokerId, Known>,
    linked: BTreeMap<PeerId, bool>,
}

impl Scene {
    fn new(remembered: Members) -> Scene {
        let now = Instant::now();
        let mesh = Mesh::new(BrokerId(1), BOUNDS, remembered, now, 7);
        Scene { mesh, now, known: BTreeMap::new(), linked: BTreeMap::new() }
    }

    /// A broker that can be reached, with these neighbours.
    fn tell(&mut self, peer: PeerId, neighbours: &[BrokerId]) {
        let address = "/ip4/192.0.2.1/tcp/7440".to_owned();
        self.record(id_of(&peer), &peer.to_string(), vec![address], neighbours.iter().map(|to| (*to, 4)));
    }

    fn record(
        &mut self,
        origin: BrokerId,
        peer_id: &str,
        addresses: Vec<String>,
        links: impl Iterator<Item = (BrokerId, u32)>,
    ) {
        let record = LinkState {
            origin,
            peer_id: peer_id.into(),
            start_nonce: 0,
            version: Version::default(),
            starting: false,
            addresses,
            links: links.map(|(neighbour, cost)| LinkEnd { neighbour, cost, nonce: 0 }).collect(),
        };
        self.known.insert(origin, Known { record: Arc::new(record), reachable: true });
    }

    /// This broker's own links, with what they cost.
    fn link(&mut self, links: &[(PeerId, u32)]) {
        self.linked = links.iter().map(|(peer, _)| (*peer, false)).collect();
        self.record(BrokerId(1), "", vec![], links.iter().map(|(peer, cost)| (id_of(peer), *cost)));
    }

    fn look(&mut self) -> (Option<String>, Vec<Action>) {
        let picture = |known: &Known| Known { record: known.record.clone(), reachable: known.reachable };
        let text = self.mesh.look(self.known.values().map(picture).collect(), |_| true, self.now);
        (text, self.mesh.decide(&self.linked, self.now))
    }

    fn dialled(&mut self, actions: &[Action]) -> Vec<BrokerId> {
        let mut dialled = Vec::new();
        for action in actions {
            let Action::Dial(to, purpose) = *action else { panic!("{action:?}") };
            assert!(self.mesh.dial(to, purpose, self.now).is_some());
            dialled.push(to);
        }
        dialled
    }
}

fn remembered(count: usize) -> Members {
    let mut members = Members::default();
    let address: Multiaddr = "/ip4/192.0.2.1/tcp/1".parse().unwrap();
    members.note((0..count).map(|_| (PeerId::random(), vec![address.clone()])).collect());
    members
}

#[test]
fn who_remembers_members_dials_them_and_has_tried_when_all_have_failed() {
    let mut scene = Scene::new(remembered(3));
    assert!(!scene.mesh.all_tried());
    let mut failed = BTreeSet::new();
    while failed.len() < 3 {
        let (text, actions) = scene.look();
        assert_eq!(text, None, "nothing new is known");
        let dialled = scene.dialled(&actions);
        assert!(!dialled.is_empty() && !scene.mesh.all_tried());
        for to in dialled {
            scene.mesh.failed(to, "refused".into(), false, scene.now);
            assert!(failed.insert(to), "tried twice at once");
        }
    }
    assert!(scene.mesh.all_tried());
    assert_eq!(scene.look().1, [], "all are waited with");
    assert!(scene.mesh.status().iter().all(|member| member.last_error.as_deref() == Some("refused")));
    scene.now += LAST_RETRY;
    assert!(!scene.look().1.is_empty(), "and tried again");
}

#[test]
fn who_is_full_is_left_in_peace_for_longer_than_who_fails() {
    for (full, wait) in [(true, LAST_RETRY / 2), (false, FIRST_RETRY)] {
        let mut scene = Scene::new(Members::default());
        let peer = PeerId::random();
        scene.tell(peer, &[]);
        let (text, actions) = scene.look();
        assert!(text.is_some_and(|text| text.contains(&peer.to_string())), "it is remembered");
        assert_eq!(scene.dialled(&actions), [id_of(&peer)]);
        assert_eq!(scene.look().1, [], "it is being dialled");
        scene.mesh.failed(id_of(&peer), "no".into(), full, scene.now);
        scene.now += wait - Duration::from_millis(1);
        assert_eq!(scene.look().1.is_empty(), full);
        scene.now += LAST_RETRY;
        assert_eq!(scene.look().1.len(), 1);
    }
}

#[test]
fn a_link_that_is_being_closed_is_dropped_once_and_not_dialled() {
    let mut scene = Scene::new(Members::default());
    let peers: Vec<PeerId> = (0..5).map(|_| PeerId::random()).collect();
    let ids: Vec<BrokerId> = peers.iter().map(id_of).chain([BrokerId(1)]).collect();
    for peer in &peers {
        let neighbours: Vec<BrokerId> = ids.iter().copied().filter(|id| *id != id_of(peer)).collect();
        scene.tell(*peer, &neighbours);
    }
    let links: Vec<(PeerId, u32)> = peers.iter().copied().zip([1, 2, 16, 4, 8]).collect();
    scene.link(&links);
    assert_eq!(scene.look().1, [Action::Drop(id_of(&peers[2]))], "five are one too many, and it is the costliest");
    assert_eq!(scene.look().1, []);
    scene.linked.remove(&peers[2]);
    scene.mesh.link_down(&peers[2]);
    assert_eq!(scene.look().1, []);
}

#[test]
fn a_nearer_member_takes_the_place_of_the_farthest_that_was_chosen() {
    let mut scene = Scene::new(Members::default());
    let peers: Vec<PeerId> = (0..4).map(|_| PeerId::random()).collect();
    let ids: Vec<BrokerId> = peers.iter().map(id_of).collect();
    for (at, peer) in peers.iter().enumerate() {
        let others = ids.iter().copied().enumerate().filter(|(other, _)| *other != at).map(|(_, id)| id);
        scene.tell(*peer, &others.chain((at < 3).then_some(BrokerId(1))).collect::<Vec<_>>());
    }
    scene.mesh.chosen = BTreeMap::from([(ids[0], true), (ids[1], false), (ids[2], false)]);
    scene.link(&[(peers[0], 64), (peers[1], 8), (peers[2], 32)]);
    scene.look();
    scene.now += 2 * MEASURE;
    let (_, actions) = scene.look();
    assert_eq!(actions, [Action::Dial(ids[3], Purpose::Measure)]);
    scene.dialled(&actions);
    let connection = ConnectionId::new_unchecked(9);
    scene.mesh.dialling(ids[3], connection);
    assert_eq!(scene.mesh.dialled(connection), Some((ids[3], true)));
    let (linked, now) = (scene.linked.clone(), scene.now);
    assert!(scene.mesh.measured(ids[3], Duration::from_millis(4), &linked, now));
    assert_eq!(scene.mesh.dialled(connection), Some((ids[3], false)), "now the hello is said");
    scene.mesh.reached(ids[3]);
    scene.linked.insert(peers[3], false);
    assert_eq!(scene.look().1, [], "the new one is not in sync yet");
    scene.link(&[(peers[0], 64), (peers[1], 8), (peers[2], 32), (peers[3], 4)]);
    scene.tell(peers[3], &[ids[0], ids[1], ids[2], BrokerId(1)]);
    assert_eq!(scene.look().1, [Action::Drop(ids[2])], "the far one stays, though it costs more");
    assert_eq!(scene.mesh.link_reason(&peers[3], false), LinkReason::Chosen);
}

#[test]
fn a_member_that_is_no_nearer_gets_no_link() {
    let mut scene = Scene::new(Members::default());
    let peers: Vec<PeerId> = (0..4).map(|_| PeerId::random()).collect();
    for peer in &peers {
        scene.tell(*peer, &[]);
    }
    scene.mesh.chosen = BTreeMap::from([(id_of(&peers[0]), true), (id_of(&peers[1]), false)]);
    scene.link(&[(peers[0], 64), (peers[1], 8)]);
    scene.look();
    let member = id_of(&peers[3]);
    scene.mesh.dial(member, Purpose::Measure, scene.now);
    let (linked, now) = (scene.linked.clone(), scene.now);
    assert!(!scene.mesh.measured(member, Duration::from_millis(9), &linked, now));
    assert!(scene.mesh.dials.is_empty());
    // An answer that never comes does not keep it from being tried again.
    scene.mesh.dial(member, Purpose::Measure, scene.now);
    scene.now += MEASURING;
    scene.look();
    assert!(scene.mesh.dials.is_empty());
}
