package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

func volumeClaimAt(t testing.TB, name, uid, version, inside string) *corev1.PersistentVolumeClaim {
	t.Helper()
	return objecttest.Parse[corev1.PersistentVolumeClaim](t,
		fmt.Sprintf("metadata: {namespace: default, name: '%s', uid: '%s', resourceVersion: '%s', annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {%s}", name, uid, version, inside))
}

func volumeAt(t testing.TB, name, uid, version, zone string) *corev1.PersistentVolume {
	t.Helper()
	return objecttest.Parse[corev1.PersistentVolume](t, fmt.Sprintf("metadata: {name: '%s', uid: '%s', resourceVersion: '%s'}\nspec: "+
		"{csi: {driver: csi.example, volumeHandle: h}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "+
		"topology.kubernetes.io/zone, operator: In, values: [%s]}]}]}}}", name, uid, version, zone))
}

// diskAt returns a volume on the disk of a node.
func diskAt(t testing.TB, name, uid, version, host string) *corev1.PersistentVolume {
	t.Helper()
	return objecttest.Parse[corev1.PersistentVolume](t, fmt.Sprintf("metadata: {name: '%s', uid: '%s', resourceVersion: '%s'}\nspec: {local: {path: /data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}}", name, uid, version, host))
}

func classAt(t testing.TB, name, uid, version, zone, isDefault string) *storagev1.StorageClass {
	t.Helper()
	return objecttest.Parse[storagev1.StorageClass](t, fmt.Sprintf("metadata: {name: '%s', uid: '%s', resourceVersion: '%s', annotations: {storageclass.kubernetes.io/is-default-class: '%s'}}\nprovisioner: csi.example\nvolumeBindingMode: WaitForFirstConsumer\nallowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [%s]}]}]", name, uid, version, isDefault, zone))
}

func namespaceAt(t testing.TB, name, uid, version, labels string) *corev1.Namespace {
	t.Helper()
	return objecttest.Parse[corev1.Namespace](t, fmt.Sprintf("metadata: {name: '%s', uid: '%s', resourceVersion: '%s', labels: {%s}}",
		name, uid, version, labels))
}

func csiNodeAt(t testing.TB, name, uid, version, count string) *storagev1.CSINode {
	t.Helper()
	return objecttest.Parse[storagev1.CSINode](t, fmt.Sprintf("metadata: {name: '%s', uid: '%s', resourceVersion: '%s'}\nspec: {drivers: [{name: csi.example, nodeID: n, allocatable: {count: %s}}]}", name, uid, version, count))
}

func serviceAt(t testing.TB, name, uid, version, selector string) *corev1.Service {
	t.Helper()
	return objecttest.Parse[corev1.Service](t, fmt.Sprintf("metadata: {namespace: default, name: '%s', uid: '%s', resourceVersion: '%s'}\nspec: {selector: {%s}}", name, uid, version, selector))
}

func replicaSetAt(t testing.TB, name, uid, version, selector string) *appsv1.ReplicaSet {
	t.Helper()
	return objecttest.Parse[appsv1.ReplicaSet](t, fmt.Sprintf("metadata: {namespace: default, name: '%s', uid: '%s', resourceVersion: '%s'}\nspec: {selector: {matchLabels: {%s}}, template: {}}", name, uid, version, selector))
}

// uses adds a volume with the claim to the pod.
func uses(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	return pod
}

// everywhere adds an anti-affinity to pods of the namespaces with a label to the pod.
func everywhere(pod *corev1.Pod, labels string) *corev1.Pod {
	affinity := objecttest.Parse[corev1.Affinity](&testing.T{},
		"podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {}, namespaceSelector: {matchLabels: {"+labels+"}}}]}")
	pod.Spec.Affinity = affinity
	return pod
}

var rackSpread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}}

// what describes the single pod of a store as far as it depends on other objects.
func what(s *State) string {
	snap := s.Snapshot(start)
	var lines []string
	for _, p := range snap.Rejected {
		lines = append(lines, "rejected: "+p.Rejected.Reason)
	}
	for _, g := range snap.Groups {
		lines = append(lines, fmt.Sprint("places ", g.VolumeAlternatives))
		for _, term := range g.Terms {
			if term.Together {
				lines = append(lines, "with those of "+term.Selector.Requirements[0].Key)
			} else {
				lines = append(lines, fmt.Sprint("apart from ", term.Selector.Namespaces))
			}
		}
		for _, spread := range g.Spread {
			lines = append(lines, fmt.Sprint("spread over ", spread.Selector.Requirements))
		}
	}
	return strings.Join(lines, "; ")
}

// dependencyStep is an event of an object that a pod depends on, and how the pod is converted after it.
type dependencyStep struct {
	saw, gone client.Object
	want      string
	// quiet says that no replanning is needed.
	quiet bool
}

// follow checks the conversion of a pod after each step.
func follow(t *testing.T, pod *corev1.Pod, steps []dependencyStep) {
	s := newState(Config{DefaultSpread: rackSpread})
	s.Saw(pod)
	s.Drain()
	for i, step := range steps {
		if step.saw != nil {
			s.Saw(step.saw)
		}
		if step.gone != nil {
			lost(s, step.gone)
		}
		if got := what(s); got != step.want {
			t.Fatalf("step %d: %s\nwant %s", i, got, step.want)
		}
		if step.saw == nil && step.gone == nil {
			continue
		}
		if got := changed(s, PodsPending); got == step.quiet {
			t.Errorf("step %d: a pod is pending again: %t, want %t", i, got, !step.quiet)
		}
	}
	lost(s, pod)
	if left := inside(s, func() int { return len(s.pods.dependents) + len(s.pods.dependsOn) }); left != 0 {
		t.Errorf("%d dependencies remain of a deleted pod", left)
	}
}

// TestPodsFollowWhatTheyDependOn changes one object in each step, but never the pod, and checks that the conversion
// of the pod follows.
func TestPodsFollowWhatTheyDependOn(t *testing.T) {
	const missing = `rejected: claim "data" does not exist in namespace default; create it`
	const bound = "volumeName: pv"
	const gone = `rejected: volume "pv" of claim "data" can be used on node host-1 only, and no node has this hostname; ` +
		`if the node is gone for good, delete the claim and the volume, so that a new volume is made`
	owner := func(pod *corev1.Pod) *corev1.Pod {
		pod.Labels = map[string]string{"app": "web"}
		pod.OwnerReferences = objecttest.Parse[corev1.Pod](t,
			"metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}]}").OwnerReferences
		return pod
	}
	pod := func() *corev1.Pod { return objecttest.Pod(t, "p", "p", "1", "") }
	for _, test := range []struct {
		name  string
		pod   *corev1.Pod
		steps []dependencyStep
	}{
		{"a claim that binds", uses(pod(), "data"), []dependencyStep{
			{want: missing},
			{saw: volumeClaimAt(t, "data", "c", "1", "storageClassName: fast"),
				want: `rejected: storage class "fast" of claim "data" does not exist`},
			{saw: classAt(t, "slow", "s", "1", "z", "true"), want: `rejected: storage class "fast" of claim "data" does not exist`, quiet: true},
			{saw: classAt(t, "fast", "s", "2", "a", "false"), want: "places [[topology.kubernetes.io/zone In [a]]]"},
			{saw: classAt(t, "fast", "s", "3", "b", "false"), want: "places [[topology.kubernetes.io/zone In [b]]]"},
			{saw: volumeClaimAt(t, "data", "c", "4", bound), want: `rejected: volume "pv" of claim "data" does not exist`},
			{saw: volumeAt(t, "pv", "v", "5", "c"), want: "places [[topology.kubernetes.io/zone In [c]]]"},
			{gone: classAt(t, "fast", "s", "3", "b", "false"), want: "places [[topology.kubernetes.io/zone In [c]]]", quiet: true},
			{gone: volumeClaimAt(t, "data", "c", "4", bound), want: missing},
		}},
		{"the default class", uses(pod(), "data"), []dependencyStep{
			{saw: volumeClaimAt(t, "data", "c", "1", ""),
				want: `rejected: claim "data" is not bound, names no storage class, and the cluster has no default one`},
			{saw: classAt(t, "one", "s", "2", "a", "true"), want: "places [[topology.kubernetes.io/zone In [a]]]"},
			{saw: classAt(t, "one", "s", "3", "a", "false"),
				want: `rejected: claim "data" is not bound, names no storage class, and the cluster has no default one`},
		}},
		{"labels of namespaces", everywhere(pod(), "team: shop"), []dependencyStep{
			{want: "places []; apart from []"},
			{saw: namespaceAt(t, "one", "n", "1", "team: shop"), want: "places []; apart from [one]"},
			{saw: namespaceAt(t, "two", "n2", "2", "team: lab"), want: "places []; apart from [one]"},
			{saw: namespaceAt(t, "two", "n2", "3", "team: shop"), want: "places []; apart from [one two]"},
			{saw: namespaceAt(t, "two", "n2", "4", "team: shop"), want: "places []; apart from [one two]", quiet: true},
			{gone: namespaceAt(t, "one", "n", "1", "team: shop"), want: "places []; apart from [two]"},
		}},
		{"the node of a disk", uses(pod(), "data"), []dependencyStep{
			{saw: volumeClaimAt(t, "data", "c", "1", bound), want: `rejected: volume "pv" of claim "data" does not exist`},
			{saw: diskAt(t, "pv", "v", "2", "host-1"), want: gone},
			{saw: objecttest.Node(t, "other", "o", "3", "", "kubernetes.io/hostname: host-2"), want: gone, quiet: true},
			{saw: objecttest.Node(t, "n", "n", "4", "", "kubernetes.io/hostname: host-1"), want: "places [[kubernetes.io/hostname In [host-1]]]"},
			{saw: objecttest.Node(t, "n", "n", "5", "", "kubernetes.io/hostname: host-1"), want: "places [[kubernetes.io/hostname In [host-1]]]",
				quiet: true},
			{gone: objecttest.Node(t, "n", "n", "5", "", "kubernetes.io/hostname: host-1"), want: gone},
		}},
		{"what selects it", owner(pod()), []dependencyStep{
			{want: "places []"},
			{saw: serviceAt(t, "others", "s2", "1", "app: db"), want: "places []", quiet: true},
			{saw: serviceAt(t, "web", "s", "2", "app: web"), want: "places []; spread over [app In [web]]"},
			{saw: serviceAt(t, "web", "s", "3", "app: web"), want: "places []; spread over [app In [web]]", quiet: true},
			{saw: replicaSetAt(t, "web", "r", "4", "hash: x"), want: "places []; spread over [app In [web] hash In [x]]"},
			{saw: serviceAt(t, "web", "s", "5", "app: db"), want: "places []; spread over [hash In [x]]"},
			{gone: replicaSetAt(t, "web", "r", "4", "hash: x"), want: "places []"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) { follow(t, test.pod, test.steps) })
	}
}

// TestDriversWithoutTopology checks that pods with a claim in common, whose volume does not exist yet, are kept together
// unless the CSINodes say that the volumes of the driver can be used everywhere.
func TestDriversWithoutTopology(t *testing.T) {
	s := newState(Config{})
	s.Saw(classAt(t, "class", "s", "1", "a", "true"))
	s.Saw(volumeClaimAt(t, "data", "c", "2", ""))
	for _, name := range []string{"web-0", "web-1"} {
		s.Saw(uses(objecttest.Pod(t, name, name, "1", ""), "data"))
	}
	together := func() bool { return strings.Contains(what(s), "with those of volume:default/data") }
	bare, keyed := csiNodeAt(t, "n1", "n1", "3", "9"), csiNodeAt(t, "n2", "n2", "4", "9")
	keyed.Spec.Drivers[0].TopologyKeys = []string{"topology.csi.example/zone"}
	for i, step := range []struct {
		do   func()
		want bool
	}{
		{func() {}, true},
		{func() { s.Saw(bare) }, false},
		{func() { s.Saw(keyed) }, true},
		{func() { lost(s, keyed) }, false},
		{func() { lost(s, bare) }, true},
	} {
		if step.do(); together() != step.want {
			t.Errorf("step %d: kept together is %t, want %t (%s)", i, together(), step.want, what(s))
		}
	}
}

// TestOnlyDependentPodsAreConvertedAgain checks that an event of a claim converts only its own pods again.
func TestOnlyDependentPodsAreConvertedAgain(t *testing.T) {
	s := newState(Config{})
	for i := range 50 {
		s.Saw(uses(objecttest.Pod(t, fmt.Sprint("p", i), fmt.Sprint("u", i), "1", ""), fmt.Sprint("data-", i)))
	}
	before := map[string]*model.Pod{}
	for _, p := range s.Snapshot(start).Rejected {
		before[p.Name] = p
	}
	s.Saw(volumeClaimAt(t, "data-7", "c", "1", "storageClassName: none"))
	for _, p := range s.Snapshot(start).Rejected {
		if same := before[p.Name] == p; same == (p.Name == "p7") {
			t.Errorf("pod %s is unchanged: %t", p.Name, same)
		}
	}
	if len(before) != 50 {
		t.Errorf("%d pods were rejected, want 50", len(before))
	}
}

// TestSharedClaims checks that a claim of one pod does not distinguish the pod from its siblings, and that as soon as
// another pod uses the claim, both must be in one zone.
func TestSharedClaims(t *testing.T) {
	const alone = "places [[topology.kubernetes.io/zone In [a]]]"
	s := newState(Config{})
	s.Saw(classAt(t, "fast", "s", "1", "a", "false"))
	for i := range 3 {
		s.Saw(volumeClaimAt(t, fmt.Sprint("data-", i), fmt.Sprint("c", i), "1", "storageClassName: fast"))
		s.Saw(uses(objecttest.Pod(t, fmt.Sprint("p", i), fmt.Sprint("u", i), "1", ""), fmt.Sprint("data-", i)))
	}
	got := []string{what(s)}
	second := uses(objecttest.Pod(t, "second", "v", "2", ""), "data-0")
	s.Saw(second)
	for _, g := range s.Snapshot(start).Groups {
		if len(g.Terms) > 0 {
			got = append(got, fmt.Sprint(len(g.Pods), " with those of ", g.Terms[0].Selector.Requirements[0].Key))
		}
	}
	lost(s, second)
	got = append(got, what(s))
	if diff := cmp.Diff([]string{alone, "2 with those of volume:default/data-0", alone}, got); diff != "" {
		t.Errorf("pods with one claim each, with a second pod for one of the claims, and without it (-want +got):\n%s", diff)
	}
}

// TestOnePodAtATime checks that the next pod may use a ReadWriteOncePod claim when the pod that uses it is deleted.
func TestOnePodAtATime(t *testing.T) {
	s := newState(Config{})
	s.Saw(classAt(t, "fast", "s", "1", "a", "false"))
	s.Saw(volumeClaimAt(t, "data", "c", "2", "storageClassName: fast, accessModes: [ReadWriteOncePod]"))
	s.Saw(uses(objecttest.Pod(t, "second", "2", "3", ""), "data"))
	first := uses(objecttest.Pod(t, "first", "1", "4", "n"), "data")
	s.Saw(first)
	if got := what(s); got != `rejected: claim "data" is ReadWriteOncePod and pod first has it` {
		t.Errorf("with a bound pod that uses the claim: %s", got)
	}
	lost(s, first)
	if got := what(s); got != "places [[topology.kubernetes.io/zone In [a]]]" {
		t.Errorf("after its deletion: %s", got)
	}
}

func TestAttachLimits(t *testing.T) {
	s := newState(Config{})
	limit := func() string {
		n := s.Snapshot(start).Node("n")
		for _, a := range n.Allocatable {
			if model.IsVolumeResource(a.Name) {
				return fmt.Sprint(a.Name, " ", a.Value)
			}
		}
		return ""
	}
	s.Saw(csiNodeAt(t, "n", "x", "1", "5"))
	s.Saw(objecttest.Node(t, "n", "n", "2", "id-1", objecttest.Registered))
	s.Saw(objecttest.Claim(t, "c", "c", "3", "id-1", ""))
	want := []string{"attachable-volumes-csi-csi.example 5", "attachable-volumes-csi-csi.example 0", ""}
	got := []string{limit()}
	s.Saw(csiNodeAt(t, "n", "x", "4", "0"))
	got = append(got, limit())
	lost(s, csiNodeAt(t, "n", "x", "4", "0"))
	got = append(got, limit())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits with a count of 5, of 0 and without a count (-want +got):\n%s", diff)
	}
}
