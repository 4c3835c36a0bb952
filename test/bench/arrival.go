package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

const (
	crowd        = "crowded-5k" // 5,000 nodes, 100,000 pods
	arrivals     = 101
	arrivalLimit = 5 * time.Millisecond
)

// arrival measures, inside this process, the time from a pod's watch event to the plan.
func (b *bench) arrival() error {
	row := b.table(fmt.Sprintf("One pod arrives at 5,000 nodes with 100,000 pods: event to plan (%d arrivals; bold: 5 ms or more)", arrivals),
		"pod", "decided", "median, ms", "95th percentile, ms", "median CPU, ms")
	folder, err := b.made(crowd, 1)
	if err != nil {
		return err
	}
	w, err := workload.Read(folder)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := storeOf(ctx, w, folder)
	if err != nil {
		return err
	}
	for _, k := range newcomers {
		elapsed, cpu, decided := k.arrive(store)
		slices.Sort(elapsed)
		slices.Sort(cpu)
		ms := func(d time.Duration) string { return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64) }
		middle := elapsed[len(elapsed)/2]
		row(k.name, decided, verdict(ms(middle), middle >= arrivalLimit), ms(elapsed[len(elapsed)*95/100]), ms(cpu[len(cpu)/2]))
	}
	return nil
}

// newcomer is a kind of pod that arrives.
type newcomer struct {
	name   string
	change func(*corev1.Pod)
}

var newcomers = []newcomer{
	{"small, without constraint", func(*corev1.Pod) {}},
	{"spread over zones", func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: workload.LabelZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
	}},
	{"one per host", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: workload.LabelHost, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
		}}}
	}},
	{"too large for the nodes there are", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30")}
	}},
}

// arrive creates one pod after the other; each is deleted before the next is created.
func (k newcomer) arrive(store *cluster.Store) (elapsed, cpu []time.Duration, decided string) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	store.Snapshot(now)
	for i := range arrivals {
		pod := newPod(i)
		k.change(pod)
		before, start := processCPU(), time.Now()
		store.Saw(pod)
		p := placement.Schedule(store.Snapshot(now), placement.Options{NodePrice: placement.ProductionNodePrice})
		elapsed, cpu = append(elapsed, time.Since(start)), append(cpu, processCPU()-before)
		switch {
		case len(p.Placed) == 1 && len(p.Claims) == 0:
			decided = "existing node"
		case len(p.Claims) == 1 && len(p.Placed) == 0:
			decided = "new node"
		default:
			decided = fmt.Sprintf("%d refused", len(p.Refused))
		}
		store.Gone(pod)
		store.Snapshot(now)
	}
	return elapsed, cpu, decided
}

func newPod(i int) *corev1.Pod {
	name := "newcomer-" + strconv.Itoa(i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"app": "app-7"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
}

// shelf is a provider that only has a catalog.
type shelf struct {
	cloud.Provider
	types  []cloud.InstanceType
	labels []string
}

func (*shelf) Name() string                 { return "shelf" }
func (*shelf) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }
func (s *shelf) Declared() cloud.Declared   { return cloud.Declared{WellKnown: s.labels} }
func (s *shelf) Catalog(context.Context, *karpv1.NodePool) ([]cloud.InstanceType, error) {
	return s.types, nil
}

// typesOf returns the instance types of a workload, and the labels that they add.
func typesOf(folder string) ([]cloud.InstanceType, []string, error) {
	file, err := os.Open(filepath.Join(folder, "instance-types.json"))
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return kwok.ReadInstanceTypes(file, file.Name())
}

// storeOf returns a store that has seen the workload and has its catalog.
func storeOf(ctx context.Context, w *workload.World, folder string) (*cluster.Store, error) {
	s := &shelf{}
	var err error
	if s.types, s.labels, err = typesOf(folder); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := kwokv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	store, err := cluster.NewStore(cluster.Config{Provider: s, Scheme: scheme, Log: logr.Discard()})
	if err != nil {
		return nil, err
	}
	notify(store, w)
	go func() { _ = store.Start(ctx) }() // ends with the context
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		for _, p := range store.Snapshot(time.Now()).Pools {
			if p.Catalog != nil && len(p.Catalog.Types) > 0 {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the catalog: %w", err)
	}
	return store, nil
}

// notify shows the store ready pools, nodes with their claims, and pods.
func notify(store *cluster.Store, w *workload.World) {
	for i := range w.Pools {
		pool := &w.Pools[i]
		pool.UID, pool.ResourceVersion = types.UID(pool.Name), "1"
		pool.Spec.Template.Spec.NodeClassRef = classRef
		pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
		pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
		store.Saw(pool)
	}
	for i := range w.Nodes {
		node := &w.Nodes[i]
		node.ResourceVersion = "1"
		store.Saw(claimOf(node))
		store.Saw(node)
	}
	for i := range w.Bound {
		w.Bound[i].ResourceVersion = "1"
		store.Saw(&w.Bound[i])
	}
}

var classRef = karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}

// claimOf returns the claim of the node.
func claimOf(node *corev1.Node) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "claim-" + node.Name, UID: types.UID("claim-" + node.Name), ResourceVersion: "1", Labels: node.Labels, CreationTimestamp: node.CreationTimestamp,
		},
		Spec:   karpv1.NodeClaimSpec{NodeClassRef: classRef},
		Status: karpv1.NodeClaimStatus{ProviderID: node.Spec.ProviderID, NodeName: node.Name, Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	for _, condition := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
		claim.StatusConditions().SetTrue(condition)
	}
	return claim
}

// processCPU returns the CPU time of this process on all processors.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
