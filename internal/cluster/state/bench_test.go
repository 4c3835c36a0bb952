package state

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

const (
	benchNodes       = 5_000
	benchPodsPerNode = 20
)

// fleet returns 5,000 nodes with their claims, and 100,000 pods of 100 Deployments bound to them.
func fleet(b *testing.B) []client.Object {
	b.Helper()
	objects := make([]client.Object, 0, benchNodes*(benchPodsPerNode+2)+1)
	objects = append(objects, objecttest.Pool(b, "pool", "pool", "1"))
	claim, node := objecttest.Claim(b, "c", "c", "1", "id", ""), objecttest.Node(b, "n", "n", "1", "id",
		objecttest.Registered+", kubernetes.io/arch: amd64, topology.kubernetes.io/zone: a")
	for i := range benchNodes {
		c, n, id := claim.DeepCopy(), node.DeepCopy(), fmt.Sprintf("shop://machine-%d", i)
		c.Name, c.UID, c.Status.ProviderID = fmt.Sprintf("claim-%d", i), types.UID(fmt.Sprintf("c%d", i)), id
		n.Name, n.UID, n.Spec.ProviderID = fmt.Sprintf("node-%d", i), types.UID(fmt.Sprintf("n%d", i)), id
		n.Labels["kubernetes.io/hostname"] = n.Name
		objects = append(objects, c, n)
		for j := range benchPodsPerNode {
			objects = append(objects, benchPod(i*benchPodsPerNode+j, n.Name))
		}
	}
	return objects
}

func benchPod(i int, node string) *corev1.Pod {
	set, yes := i%100, true
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(50+set), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(set+1)<<20, resource.BinarySI),
	}
	status := corev1.ContainerStatus{Name: "main", AllocatedResources: requests, Resources: &corev1.ResourceRequirements{Requests: requests}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%d", i), Namespace: "default", UID: types.UID(fmt.Sprintf("p%d", i)), ResourceVersion: fmt.Sprint(i + 1),
			CreationTimestamp: metav1.NewTime(start), Labels: map[string]string{"app": fmt.Sprintf("app-%d", set)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d", set), UID: "r", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

func toldFleet(b *testing.B, objects []client.Object) *State {
	b.Helper()
	s := newState(Config{})
	for _, obj := range objects {
		s.Saw(obj)
	}
	s.SetTypes(s.Pool("pool"), smallType(s), "")
	return s
}

// cpu returns the time that all processors together have spent on this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkColdSnapshot measures the first snapshot of a store with a whole fleet. The goal is 100 ms of CPU.
func BenchmarkColdSnapshot(b *testing.B) {
	objects := fleet(b)
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		s := toldFleet(b, objects)
		runtime.GC() // the garbage of filling the store does not belong to the snapshot
		b.StartTimer()
		before := cpu(b)
		s.Snapshot(start)
		spent += cpu(b) - before
	}
	b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// BenchmarkFirstList measures filling a store with a whole fleet.
func BenchmarkFirstList(b *testing.B) {
	objects := fleet(b)
	before := cpu(b)
	for b.Loop() {
		toldFleet(b, objects)
	}
	spent := cpu(b) - before
	b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/float64(len(objects)), "cpu-ns/object")
}

// BenchmarkNextSnapshot measures one pod event and the following snapshot. The goal is 1 ms of CPU.
func BenchmarkNextSnapshot(b *testing.B) {
	s := toldFleet(b, fleet(b))
	s.Snapshot(start)
	pod, version := benchPod(7, "node-0"), 1_000_000
	runtime.GC()
	before := cpu(b)
	for b.Loop() {
		version++
		next := *pod
		next.ResourceVersion = fmt.Sprint(version)
		s.Saw(&next)
		s.Snapshot(start)
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// BenchmarkNoNews measures a snapshot without changes.
func BenchmarkNoNews(b *testing.B) {
	s := toldFleet(b, fleet(b))
	for b.Loop() {
		s.Snapshot(start)
	}
}

// BenchmarkPodEvent measures a status update of a bound pod.
func BenchmarkPodEvent(b *testing.B) {
	s := toldFleet(b, fleet(b))
	pod, version := benchPod(7, "node-0"), 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		version++
		next := *pod
		next.ResourceVersion = fmt.Sprint(version)
		s.Saw(&next)
	}
}

// BenchmarkNodeEvent measures a heartbeat of a node.
func BenchmarkNodeEvent(b *testing.B) {
	s := toldFleet(b, fleet(b))
	node := s.Node("node-7").DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		node.Status.Conditions = append(node.Status.Conditions[:0], corev1.NodeCondition{Type: "MemoryPressure", LastHeartbeatTime: metav1.NewTime(time.Now())})
		s.Saw(node)
	}
}

// BenchmarkClaimEvent measures a change of a claim that affects planning.
func BenchmarkClaimEvent(b *testing.B) {
	s := toldFleet(b, fleet(b))
	claims := [2]*karpv1.NodeClaim{s.Claim("claim-7").DeepCopy(), s.Claim("claim-7").DeepCopy()}
	claims[1].Annotations = map[string]string{karpv1.AnnotationCommand: "x"}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		s.Saw(claims[i%2])
	}
}
