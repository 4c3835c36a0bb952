package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// scaling is a store with one workload and its pods.
type scaling struct {
	*State
	t       *testing.T
	version int
	now     time.Time
	owner   string
}

func newScaling(t *testing.T, owner string) *scaling {
	s := newState(Config{Replicas: true})
	return &scaling{State: s, t: t, now: start, owner: owner}
}

// see shows an object with the spec and status to the store.
func see[T any, O interface {
	*T
	client.Object
}](s *scaling, generation int, text string) {
	s.version++
	s.Saw(O(objecttest.Parse[T](s.t, fmt.Sprintf("metadata: {name: web, namespace: default, uid: web, resourceVersion: '%d', generation: "+
		"%d}\n%s",
		s.version, generation, text))))
}

// pod shows a pod of the workload with the name, and what is added to its spec and status.
func (s *scaling) pod(name, spec, status string) {
	s.version++
	s.Saw(objecttest.Parse[corev1.Pod](s.t, fmt.Sprintf(`
metadata:
  {name: %[1]s, namespace: default, uid: uid-%[1]s, resourceVersion: '%[2]d', labels: {app: web}, ownerReferences: [{%[3]s, name: web, uid: web, controller: true}]}
spec: {containers: [{name: a, resources: {requests: {cpu: 100m}}}], %[4]s}
status: {%[5]s}
`, name, s.version, s.owner, spec, status)))
}

const (
	byReplicaSet  = "apiVersion: apps/v1, kind: ReplicaSet"
	byStatefulSet = "apiVersion: apps/v1, kind: StatefulSet"
	byJob         = "apiVersion: batch/v1, kind: Job"
	waits         = `conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]`
	gated         = `conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]`
)

// counts checks the numbers of pending and of virtual pods in the next snapshot, a second later.
func (s *scaling) counts(when string, pending, virtual int) *model.Snapshot {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	snap := s.Snapshot(s.now)
	count := func(groups []*model.Group) (n int) {
		for _, g := range groups {
			n += len(g.Pods)
		}
		return n
	}
	if p, v := count(snap.Groups), count(snap.Virtual); p != pending || v != virtual {
		s.t.Errorf("%s there are %d pending and %d virtual pods, want %d and %d", when, p, v, pending, virtual)
	}
	return snap
}

// called checks whether the state has announced pods since the last call.
func (s *scaling) called(when string, want bool) {
	s.t.Helper()
	if got := changed(s.State, ReplicasAsked); got != want {
		s.t.Errorf("%s the state announces pods: %t, want %t", when, got, want)
	}
}

func virtualNames(snap *model.Snapshot) []string {
	var names []string
	for _, g := range snap.Virtual {
		for _, p := range g.Pods {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestReplicas follows a scale-up of a ReplicaSet (PS-1): each pod is pending or virtual, and never both.
func TestReplicas(t *testing.T) {
	s := newScaling(t, byReplicaSet)
	see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 0}")
	s.called("without replicas", false)
	see[appsv1.ReplicaSet](s, 2, "spec: {replicas: 1000}")
	s.called("at the scale command", true)
	s.counts("without a pod to copy", 0, 0)
	s.pod("web-a", "", "")
	s.called("at the first pod", true)
	s.pod("web-b", "", "")
	s.called("at the second pod", false)
	snap := s.counts("when kube-scheduler has considered no pod", 0, 1000)
	if p := snap.Virtual[0].Pods[0]; p.Controller != (model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}) ||
		p.Virtual != model.VirtualReplica || p.Requests.At(0) == 0 {
		t.Errorf("a virtual pod is %+v", p)
	}
	for i := range 100 {
		s.pod(fmt.Sprintf("web-%d", i), "", waits)
	}
	s.counts("when 100 pods are pending", 100, 900)
	s.pod("web-a", "nodeName: n", "")
	s.counts("when a pod is bound", 100, 899)
	lost(s.State, s.objects[Pods][client.ObjectKey{Namespace: "default", Name: "web-0"}].object)
	s.counts("when a pod is gone again", 99, 900)
	see[appsv1.ReplicaSet](s, 3, "spec: {replicas: 50}")
	s.counts("when fewer are asked for", 99, 0)
	for i := range 60 {
		lost(s.State, s.objects[Pods][client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("web-%d", 99-i)}].object)
	}
	s.counts("when a pod that existed is missing", 39, 0)
	see[appsv1.ReplicaSet](s, 4, "spec: {replicas: 60}")
	s.counts("when more are asked for", 39, 20)
	lost(s.State, s.objects[ReplicaSets][client.ObjectKey{Namespace: "default", Name: "web"}].object)
	s.counts("when the ReplicaSet is gone", 39, 0)
}

// TestReplicasDoNotCome: virtual pods whose pods are not created are removed, and those of the next scale-up wait.
func TestReplicasDoNotCome(t *testing.T) {
	s := newScaling(t, byReplicaSet)
	see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 10}")
	s.pod("web-a", "", waits)
	s.counts("at first", 1, 9)
	s.now = s.now.Add(replicaPatience - 10*time.Second)
	s.pod("web-b", "", waits)
	s.counts("after a pod", 2, 8)
	s.now = s.now.Add(replicaPatience - 2*time.Second)
	s.counts("before the end", 2, 8)
	s.now = s.now.Add(2 * time.Second)
	s.counts("after the end", 2, 0)
	see[appsv1.ReplicaSet](s, 2, "spec: {replicas: 20}")
	s.counts("in the pause", 2, 0)
	s.now = s.now.Add(time.Minute)
	see[appsv1.ReplicaSet](s, 3, "spec: {replicas: 30}")
	s.counts("after the pause", 2, 28)
	see[appsv1.ReplicaSet](s, 3, "spec: {replicas: 30}\nstatus: {conditions: [{type: ReplicaFailure, status: 'True'}]}")
	s.counts("when creation fails, as by a quota", 2, 0)
	see[appsv1.ReplicaSet](s, 4, "spec: {replicas: 40}")
	s.now = s.now.Add(time.Minute)
	s.counts("in the second pause, which is longer", 2, 0)
}

// TestReplicasThatFail verifies that a workload whose pods fail and are created again keeps no virtual pods: those would
// hold nodes for pods that never come.
func TestReplicasThatFail(t *testing.T) {
	s := newScaling(t, byReplicaSet)
	see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 1}")
	s.pod("web-0", "nodeName: n", "phase: Running")
	see[appsv1.ReplicaSet](s, 2, "spec: {replicas: 5}")
	s.counts("after the request", 0, 4)
	for i := range 10 {
		s.now = s.now.Add(replicaPatience / 4)
		name := fmt.Sprintf("web-failed-%d", i)
		s.pod(name, "nodeName: n", "phase: Running")
		s.pod(name, "nodeName: n", "phase: Failed")
		s.Snapshot(s.now)
	}
	s.counts("after many failures", 0, 0)
}

// TestReplicasOfJobs: the first pods of a Job are planned, unless it is suspended, has ended, or pods have failed.
func TestReplicasOfJobs(t *testing.T) {
	for name, c := range map[string]struct {
		job     string
		pods    int // that are pending, in addition to a running and an ended one
		virtual int
	}{
		"parallelism":              {"spec: {parallelism: 10, completions: 100}", 3, 5},
		"completions":              {"spec: {parallelism: 10, completions: 6}", 3, 1},
		"the first pods exist":     {"spec: {parallelism: 5, completions: 100}", 3, 0},
		"without completions":      {"spec: {parallelism: 10}", 0, 8},
		"a work queue runs empty":  {"spec: {parallelism: 10}\nstatus: {succeeded: 1}", 0, 0},
		"suspended":                {"spec: {parallelism: 10, completions: 10, suspend: true}", 0, 0},
		"by another controller":    {"spec: {parallelism: 10, completions: 10, managedBy: kueue.x-k8s.io/multikueue}", 0, 0},
		"complete":                 {"spec: {parallelism: 10, completions: 10}\nstatus: {conditions: [{type: Complete, status: 'True'}]}", 0, 0},
		"resumed":                  {"spec: {parallelism: 10, completions: 10}\nstatus: {conditions: [{type: Suspended, status: 'False'}]}", 0, 8},
		"a pod has failed":         {"spec: {parallelism: 10, completions: 10}\nstatus: {failed: 1}", 0, 0},
		"by the controller itself": {"spec: {parallelism: 10, completions: 10, managedBy: kubernetes.io/job-controller}", 0, 8},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScaling(t, byJob)
			see[batchv1.Job](s, 1, c.job)
			s.pod("web-done", "nodeName: n", "phase: Succeeded")
			for i := range c.pods {
				s.pod(fmt.Sprintf("web-%d", i), "", waits)
			}
			s.pod("web-runs", "nodeName: n", "phase: Running")
			s.counts("then", c.pods, c.virtual)
		})
	}
}

// TestReplicasOfStatefulSets: virtual pods have the names and labels of the missing ordinals, and the volumes of claims
// that exist. With the policy OrderedReady only one pod is ahead.
func TestReplicasOfStatefulSets(t *testing.T) {
	const volume = "volumes: [{name: data, persistentVolumeClaim: {claimName: data-web-%d}}]"
	s := newScaling(t, byStatefulSet)
	s.Saw(objecttest.Parse[corev1.PersistentVolumeClaim](t, `
metadata: {name: data-web-8, namespace: default, uid: c, resourceVersion: '1', annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: v}`))
	s.Saw(objecttest.Parse[corev1.PersistentVolume](t, `
metadata: {name: v, uid: v, resourceVersion: '1'}
spec:
  claimRef: {namespace: default, name: data-web-8, uid: c}
  csi: {driver: d, volumeHandle: v}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}`))
	see[appsv1.StatefulSet](s, 1, "spec: {replicas: 4, podManagementPolicy: Parallel, ordinals: {start: 5}}")
	s.pod("web-6", "nodeName: n, "+fmt.Sprintf(volume, 6), "phase: Running")
	snap := s.counts("of four", 0, 3)
	if diff := cmp.Diff([]string{"web-5", "web-7", "web-8"}, virtualNames(snap)); diff != "" {
		t.Errorf("virtual pods (-want +got):\n%s", diff)
	}
	for _, g := range snap.Virtual {
		for _, p := range g.Pods {
			if p.Labels["apps.kubernetes.io/pod-index"] != strings.TrimPrefix(p.Name, "web-") || p.Labels["app"] != "web" {
				t.Errorf("the labels of %s are %v", p.Name, p.Labels)
			}
			if bound := len(g.VolumeAlternatives) > 0; bound != (p.Name == "web-8") {
				t.Errorf("%s is where its volume is: %t", p.Name, bound)
			}
		}
	}
	see[appsv1.StatefulSet](s, 2, "spec: {replicas: 4, ordinals: {start: 5}}")
	snap = s.counts("one after another", 0, 1)
	if diff := cmp.Diff([]string{"web-5"}, virtualNames(snap)); diff != "" {
		t.Errorf("virtual pods (-want +got):\n%s", diff)
	}
}

// TestReplicasLikePods: a virtual pod is a copy of a pod that the scale-up has created; where such a pod is not for this
// controller, there are none.
func TestReplicasLikePods(t *testing.T) {
	for name, c := range map[string]struct {
		spec, status string
		pending      int
		virtual      int
	}{
		"pending":                      {"", waits, 1, 9},
		"kept by a scheduling gate":    {"schedulingGates: [{name: kueue.x-k8s.io/admission}]", gated, 0, 0},
		"for another scheduler":        {"schedulerName: fargate-scheduler", waits, 1, 0},
		"of a NodePool that is barred": {"nodeSelector: {karpenter.sh/nodepool: a, kubernetes.io/hostname: b}", waits, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScaling(t, byReplicaSet)
			see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 10}")
			s.pod("web-a", c.spec, c.status)
			s.counts("then", c.pending, c.virtual)
		})
	}
	t.Run("changed by admission", func(t *testing.T) {
		s := newScaling(t, byReplicaSet)
		see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 1}")
		s.pod("web-a", "nodeName: n", "phase: Running")
		see[appsv1.ReplicaSet](s, 2, "spec: {replicas: 3}")
		snap := s.counts("before a pod is created", 0, 2)
		before := snap.Virtual[0].Requests.At(0)
		s.pod("web-b", "overhead: {cpu: 1}", "")
		snap = s.counts("after a pod is created", 0, 2)
		if got := snap.Virtual[0].Requests.At(0); got != before+1000 {
			t.Errorf("the virtual pods request %d, want those of the new pod, %d more than %d", got, 1000, before)
		}
	})
}

// TestReplicasDelayed: pods for which no node is launched at once are not planned ahead of their creation either.
func TestReplicasDelayed(t *testing.T) {
	s := newScaling(t, byReplicaSet)
	s.State = newState(Config{Replicas: true, Pods: convert.PodRules{Delay: time.Hour}})
	see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 10}")
	s.pod("web-a", "", waits)
	s.counts("then", 1, 0)
}

// TestAwaited: a workload is waited for until it has a pod, its controller fails, or the time is over since it asked.
func TestAwaited(t *testing.T) {
	const ask = "spec: {replicas: 10}"
	for name, c := range map[string]struct {
		then func(*scaling)
		want []bool // at once, and after 4, 8 and 12 s
	}{
		"nothing happens":     {func(*scaling) {}, []bool{true, true, true, false}},
		"a snapshot is taken": {func(s *scaling) { s.Snapshot(s.now) }, []bool{true, true, true, false}},
		"a pod is created":    {func(s *scaling) { s.pod("web-a", "", "") }, []bool{false, false, false, false}},
		"creation fails": {func(s *scaling) {
			see[appsv1.ReplicaSet](s, 2, ask+"\nstatus: {conditions: [{type: ReplicaFailure, status: 'True'}]}")
		}, []bool{false, false, false, false}},
		"fewer are asked for": {func(s *scaling) { see[appsv1.ReplicaSet](s, 2, "spec: {replicas: 0}") }, []bool{false, false, false, false}},
		"more are asked for":  {func(s *scaling) { see[appsv1.ReplicaSet](s, 2, "spec: {replicas: 20}") }, []bool{true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScaling(t, byReplicaSet)
			if s.Awaited(s.now, 10*time.Second) {
				t.Error("a pod is awaited of no workload")
			}
			see[appsv1.ReplicaSet](s, 1, ask)
			s.Awaited(s.now, 10*time.Second)
			c.then(s)
			var got []bool
			for _, after := range []time.Duration{0, 4 * time.Second, 8 * time.Second, 12 * time.Second} {
				got = append(got, s.Awaited(s.now.Add(after), 10*time.Second))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("pods are awaited (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplicasOff: without the option there are no virtual pods.
func TestReplicasOff(t *testing.T) {
	s := newScaling(t, byReplicaSet)
	s.State = newState(Config{})
	see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 10}")
	s.pod("web-a", "", waits)
	s.counts("then", 1, 0)
}

// TestMostReplicas: virtual pods of all workloads together are limited.
func TestMostReplicas(t *testing.T) {
	s := newScaling(t, byReplicaSet)
	see[appsv1.ReplicaSet](s, 1, "spec: {replicas: 1000000}")
	s.pod("web-a", "", "")
	s.counts("then", 0, mostReplicas)
}
