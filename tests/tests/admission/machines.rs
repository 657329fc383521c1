//! KubeVirt's virtual machines, whose pods have another name each time. KubeVirt itself does not run here: its two kinds are
//! stubs, with the labels and controllers that its own pods have.

use super::garbage::{GROUP, address, get, held, staged};
use anyhow::ensure;
use serde_json::{Value, json};
use tests::controller::{SOON, Stage};
use tests::wait;

const KUBEVIRT: &str = "/apis/kubevirt.io/v1/namespaces/team-a";

async fn kubevirt(stage: &Stage) {
    for (kind, plural) in [("VirtualMachine", "virtualmachines"), ("VirtualMachineInstance", "virtualmachineinstances")]
    {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let names = json!({"kind": kind, "plural": plural, "singular": kind.to_lowercase()});
        let spec = json!({"group": "kubevirt.io", "scope": "Namespaced", "names": names, "versions": [version]});
        let definition = json!({"metadata": {"name": format!("{plural}.kubevirt.io")}, "spec": spec});
        stage.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.accepted();
        wait::until(format!("the API of {plural}"), SOON, async || {
            let list = get(stage, &format!("{KUBEVIRT}/{plural}")).await;
            ensure!(list["items"].is_array(), "{list}");
            Ok(())
        })
        .await;
    }
}

fn controlled_by(kind: &str, name: &str, uid: &Value) -> Value {
    json!([{"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// Machine `NAME`, its instance, and the instance's pod on node `m`: UIDs of machine and pod.
async fn machine(stage: &Stage, name: &str, more: &Value) -> (Value, Value) {
    let object = |kind: &str, owners: Value| json!({"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": name, "ownerReferences": owners}});
    let of = object("VirtualMachine", json!([]));
    let machine = stage.create(&format!("{KUBEVIRT}/virtualmachines"), &of).await.accepted()["metadata"]["uid"].clone();
    let of = object("VirtualMachineInstance", controlled_by("VirtualMachine", name, &machine));
    let instance =
        stage.create(&format!("{KUBEVIRT}/virtualmachineinstances"), &of).await.accepted()["metadata"]["uid"].clone();
    let mut pod = tests::answer::pod_with(&json!({}));
    let mut labels = json!({"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "its-host-name"});
    labels.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    pod["metadata"] = json!({
        "generateName": format!("virt-launcher-{name}-"), "labels": labels,
        "ownerReferences": controlled_by("VirtualMachineInstance", name, &instance),
    });
    pod["spec"]["nodeName"] = "m".into();
    (machine, stage.pod("team-a", &pod).await.accepted()["metadata"]["uid"].clone())
}

#[tokio::test]
async fn the_address_of_a_machine_follows_it_to_a_pod_of_another_name() {
    let stage = staged().await;
    kubevirt(&stage).await;
    let owner = |name: &str, uid: &Value| json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name, "uid": uid});
    let (vm, uid) = machine(&stage, "vm", &json!({})).await;
    let was = json!({"owner": owner("vm", &vm), "detached": true});
    held(&stage, 0, "n", "virt-launcher-vm-old", &json!("old"), &was).await;
    // Moved while it runs: the pod that it is moved into has an address of its own.
    let (moving, _) = machine(&stage, "moving", &json!({"kubevirt.io/migrationJobUID": "job"})).await;
    let was = json!({"owner": owner("moving", &moving), "detached": true});
    held(&stage, 1, "n", "virt-launcher-moving-old", &json!("old-2"), &was).await;
    // On a machine that is off, and stopped; and one that is not there any more.
    let (stopped, _) = machine(&stage, "stopped", &json!({"kubevirt.io/migrationJobUID": "job"})).await;
    held(&stage, 2, "off", "virt-launcher-stopped-old", &json!("old-3"), &json!({"owner": owner("stopped", &stopped)}))
        .await;
    held(&stage, 3, "off", "virt-launcher-gone-old", &json!("old-4"), &json!({"owner": owner("gone", &json!("x"))}))
        .await;

    let controller = stage.ready_controller(&Stage::conf()).await;
    wait::until("the address to follow, and that of no machine to be free", SOON, async || {
        let moved = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(0))).await;
        let freed = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(3))).await;
        let (pod, node) = (&moved["spec"]["pod"], &moved["spec"]["node"]["name"]);
        let name = pod["name"].as_str().unwrap_or_default();
        ensure!(
            pod["uid"] == uid && node == "m" && name.starts_with("virt-launcher-vm-") && freed["code"] == 404,
            "{moved} {freed}\n{}",
            controller.logged()
        );
        Ok(())
    })
    .await;
    for (n, node) in [(1, "n"), (2, "off")] {
        let kept = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(n))).await;
        assert_eq!(kept["spec"]["node"]["name"], node, "{kept}");
    }
    drop(controller);

    // Where machines do not keep their addresses, what is left of one on a node that is off is free.
    let controller = stage.ready_controller(&format!("{}enableKubevirtStaticIP: false\n", Stage::conf())).await;
    wait::until("the address of the stopped machine to be free", SOON, async || {
        let freed = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(2))).await;
        ensure!(freed["code"] == 404, "{freed}\n{}", controller.logged());
        Ok(())
    })
    .await;
}
