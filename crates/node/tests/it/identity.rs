//! The data directory: the key, the lock, the incarnation.

use crate::support::{directory, listening, loopback, within};
use enroute_node::{Node, NodeError};

#[tokio::test]
async fn a_data_directory_serves_one_node_at_a_time() {
    let path = directory("locked");
    let first = within("start", Node::builder().data_dir(&path).start()).await.unwrap();
    let error = within("start", Node::builder().data_dir(&path).start()).await.err().expect("it is locked");
    assert!(matches!(&error, NodeError::DataDirInUse { .. }), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    within("shutdown", first.shutdown()).await;
    let second =
        within("start", Node::builder().data_dir(&path).start()).await.expect("the lock is gone with the node");
    assert_eq!(second.id(), first.id());
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_may_read_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let path = directory("mode");
    let node = within("start", Node::builder().data_dir(&path).start()).await.unwrap();
    let mode = std::fs::metadata(path.join("identity.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let key = enroute_node::read_keypair(&path).unwrap().expect("it is there");
    assert_eq!(key.public().to_peer_id(), node.peer_id());
}

#[tokio::test]
async fn damage_is_named() {
    let greatest = u64::MAX.to_string();
    let damaged = [
        ("identity.key", "no key", "not a key"),
        ("identity.key", "", "empty"),
        ("incarnation", "many", "not a number"),
        ("incarnation", &greatest, "above"),
    ];
    for (file, content, reason) in damaged {
        let path = directory("damaged");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(file), content).unwrap();
        let error = within("start", Node::builder().data_dir(&path).start()).await.err().expect("it is damaged");
        assert!(matches!(&error, NodeError::Damaged { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(file) && text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn an_incarnation_from_the_future_is_still_exceeded() {
    let path = directory("future");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("incarnation"), "9000000000000\n").unwrap();
    let node = within("start", Node::builder().data_dir(&path).start()).await.unwrap();
    assert_eq!(node.status().await.unwrap().broker.incarnation, 9_000_000_000_001);
    let stored = std::fs::read_to_string(path.join("incarnation")).unwrap();
    assert_eq!(stored, "9000000000001\n");
}

#[tokio::test]
async fn a_second_key_for_one_directory_is_refused() {
    let path = directory("two-keys");
    let given = enroute_node::Keypair::generate_ed25519();
    let node = within("start", Node::builder().data_dir(&path).keypair(given.clone()).start()).await.unwrap();
    assert_eq!(node.peer_id(), given.public().to_peer_id());
    within("shutdown", node.shutdown()).await;
    let other = enroute_node::Keypair::generate_ed25519();
    let error = within("start", Node::builder().data_dir(&path).keypair(other).start()).await.err().unwrap();
    assert!(matches!(error, NodeError::TwoKeys { .. }), "{error}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let node = listening().await;
    let taken = node.addresses()[0].clone();
    let bare = taken.iter().take(2).collect::<enroute_node::Multiaddr>();
    let error = within("start", Node::builder().listen(loopback()).listen(bare.clone()).start()).await.err().unwrap();
    assert!(matches!(&error, NodeError::Listen { address, .. } if *address == bare), "{error}");
    assert!(error.to_string().contains(&bare.to_string()), "{error}");
}
