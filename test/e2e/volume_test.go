package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// volumeTypes is one type in three zones; a node of it holds three volumes.
const volumeTypes = `{"instanceTypes": [{"name": "m.large", "arch": "amd64", "os": ["linux"],
  "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "attachLimits": {"` + csiDriver + `": 3},
  "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.4}, {"zone": "b", "capacityType": "on-demand", "price": 0.4},
    {"zone": "c", "capacityType": "on-demand", "price": 0.4}]}]}`

// TestVolumes checks that volumes are created in the zones of their pods, and that pods are bound in the zones of
// their volumes.
func TestVolumes(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	types := filepath.Join(t.TempDir(), "types.json")
	write(t, types, volumeTypes)
	driver := startCSI(t, c, 3)
	c.runController(t, filepath.Join(artifacts, "volumes.log"), append([]string{"--instance-types-file-path=" + types}, quickTimers...)...)
	for _, play := range []struct {
		name string
		test func(*stage)
	}{{"volumes", playVolumes}, {"attach", playAttachLimits}, {"detach", func(s *stage) { playDetach(s, driver) }}} {
		t.Run(play.name, func(t *testing.T) { play.test(newStage(t, c, play.name)) })
	}
}

// playVolumes spreads the members of a StatefulSet over the zones, each with a volume in its own. When a node is
// removed, its member gets a new node in the zone of its volume.
func playVolumes(s *stage) {
	s.setReplicas("web", 3)
	await(s.t, patience, "three members to run", s.running("web", 3))
	zones := map[string]string{}
	members := map[string]bool{}
	for _, pod := range s.pods("web") {
		zones[pod.Name] = s.node(pod).Labels[corev1.LabelTopologyZone]
		members[zones[pod.Name]] = true
	}
	if len(members) != 3 {
		s.t.Fatalf("the members are in the zones %v, want one in each of three", zones)
	}
	before := s.pod("web-1")
	s.remove(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: s.claimOf(before)}})
	await(s.t, patience, "web-1 to run on another node", func(context.Context) error {
		now := s.pod("web-1")
		if now == nil || now.UID == before.UID || now.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is still the old one, or does not run")
		}
		if now.Spec.NodeName == before.Spec.NodeName {
			return fmt.Errorf("it is on %s again", now.Spec.NodeName)
		}
		return nil
	})
	if zone := s.node(s.pod("web-1")).Labels[corev1.LabelTopologyZone]; zone != zones["web-1"] {
		s.t.Errorf("web-1 came back in zone %s, its volume is in %s", zone, zones["web-1"])
	}
	if n := s.ledger.count(s.name).claimsEver; n != 4 {
		s.t.Errorf("%d claims were created, want one for each member and one for the removed node", n)
	}
}

// playAttachLimits checks that an existing node is filled up to its attach limit, and that no new node gets more.
func playAttachLimits(s *stage) {
	s.setReplicas("db", 2)
	await(s.t, patience, "two members to run", s.running("db", 2))
	if n := s.ledger.count(s.name).claimsEver; n != 1 {
		s.t.Errorf("%d claims were created for two members, want 1", n)
	}
	s.setReplicas("db", 7)
	await(s.t, patience, "seven members to run", s.running("db", 7))
	on := map[string]int{}
	for _, pod := range s.pods("db") {
		on[pod.Spec.NodeName]++
	}
	for node, n := range on {
		if n > 3 {
			s.t.Errorf("node %s has %d volumes, want 3 at most", node, n)
		}
	}
	if n := s.ledger.count(s.name).claimsEver; n != 3 {
		s.t.Errorf("%d claims were created, want 3 for seven volumes; pods by node: %v", n, on)
	}
}

// playDetach checks that a machine is not terminated until the volumes of its former pods are detached.
func playDetach(s *stage, driver *csi) {
	s.setReplicas("db", 1)
	await(s.t, patience, "the pod to run", s.running("db", 1))
	pod := s.pod("db-0")
	node, claim := s.node(pod).DeepCopy(), &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: s.claimOf(pod)}}
	driver.hold(true)
	defer driver.hold(false)
	s.remove(claim)
	await(s.t, patience, "the drain to wait for the volume", s.says(node, "AwaitingVolumeDetachment", "volumeattachments"))
	if err := s.cluster.Get(s.t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		s.t.Fatal(err)
	}
	conditions := claim.StatusConditions()
	if c := conditions.Get(karpv1.ConditionDrained); !c.IsTrue() {
		s.t.Errorf("the condition Drained is %+v, want true", c)
	}
	if c := conditions.Get(karpv1.ConditionVolumesDetached); !c.IsUnknown() {
		s.t.Errorf("the condition VolumesDetached is %+v, want unknown", c)
	}
	if c := conditions.Get(karpv1.ConditionInstanceTerminating); c != nil {
		s.t.Errorf("the condition InstanceTerminating is %+v, want none", c)
	}
	driver.hold(false)
	await(s.t, patience, "the node to go", func(ctx context.Context) error {
		if err := s.cluster.Get(ctx, client.ObjectKeyFromObject(node), node); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there, or cannot be read: %v", err)
		}
		return nil
	})
}

func (s *stage) setReplicas(set string, replicas int) {
	s.t.Helper()
	object := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: set}}
	s.patch(object, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// pod returns a pod of the case that is not terminating, nil if there is none.
func (s *stage) pod(name string) *corev1.Pod {
	for _, pod := range s.ledger.podsOf(s.name) {
		if pod.Name == name && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	return nil
}

// claimOf returns the name of the claim of the pod's node.
func (s *stage) claimOf(pod *corev1.Pod) string {
	s.t.Helper()
	for _, claim := range s.ledger.claimsOf(s.name) {
		if claim.object.Status.NodeName == pod.Spec.NodeName {
			return claim.object.Name
		}
	}
	s.t.Fatalf("no claim has the node %q of pod %s", pod.Spec.NodeName, pod.Name)
	return ""
}
