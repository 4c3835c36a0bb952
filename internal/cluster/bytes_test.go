package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// crowd serves n objects of one kind, which are made when they are read.
type crowd struct {
	n    int
	make func(i int) client.Object
}

func (c crowd) list(_ context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
	from, _ := strconv.Atoi(o.Continue)
	to := min(c.n, from+int(o.Limit))
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := from; i < to; i++ {
		list.Items = append(list.Items, c.make(i))
	}
	if to < c.n {
		list.Continue = strconv.Itoa(to)
	}
	return list, nil
}

func (c crowd) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("List").GroupKind(), "", nil)
	}
	return watch.NewFake(), nil
}

// TestBytesOfACluster bounds the memory of a node with its claim, and of a pod: in the informers with their indexes, in the
// store and in its snapshots. The objects are as large as those of make scale.
func TestBytesOfACluster(t *testing.T) {
	if withoutMutationDetector(t) {
		return
	}
	const nodes, podsPerNode, mostPair, mostPod = 1000, 20, 13 << 10, 1200
	s := newStore(t, Config{Provider: &shop{}})
	options := CacheOptions(nil, func(error) {})
	var informers []toolscache.SharedIndexInformer
	fill := func(n int, make func(i int) client.Object, indexers toolscache.Indexers) int64 {
		before := heap()
		c := crowd{n, make}
		lw := &toolscache.ListWatch{ListWithContextFunc: c.list, WatchFuncWithContext: c.watch}
		ref, _ := state.RefOf(make(0))
		informers = append(informers, filled(t, s.handler(ref.Kind), options.NewInformer(lw, make(0), 0, indexers), options.DefaultTransform))
		s.Snapshot(start)
		return heap() - before
	}
	node, claim, pod := template(t, "node"), template(t, "claim"), template(t, "pod")
	pair := fill(nodes, func(i int) client.Object { return made(t, claim, &karpv1.NodeClaim{}, "NNNNN", i) }, toolscache.Indexers{
		"machine": func(o any) ([]string, error) { return []string{o.(*karpv1.NodeClaim).Status.ProviderID}, nil },
		"pool": func(o any) ([]string, error) {
			return []string{o.(*karpv1.NodeClaim).Labels[karpv1.LabelNodePool]}, nil
		},
	})
	pair += fill(nodes, func(i int) client.Object { return made(t, node, &corev1.Node{}, "NNNNN", i) }, toolscache.Indexers{
		"machine": func(o any) ([]string, error) { return []string{o.(*corev1.Node).Spec.ProviderID}, nil },
		"pool":    func(o any) ([]string, error) { return []string{o.(*corev1.Node).Labels[karpv1.LabelNodePool]}, nil },
	})
	pods := fill(nodes*podsPerNode, func(i int) client.Object {
		return made(t, pod, &corev1.Pod{}, "NNNNN", i, "MMMMM", i/podsPerNode, "TTT", i%100)
	}, toolscache.Indexers{
		"node":                    func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil },
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	if snap := s.Snapshot(start); len(snap.Nodes) != nodes || len(snap.Nodes[0].Pods) != podsPerNode {
		t.Fatalf("%d nodes, %d pods on the first, want %d and %d", len(snap.Nodes), len(snap.Nodes[0].Pods), nodes, podsPerNode)
	}
	pair, pods = pair/nodes, pods/(nodes*podsPerNode)
	t.Logf("%d bytes for each node with its claim, %d for each pod", pair, pods)
	if pair > mostPair {
		t.Errorf("%d bytes for each node with its claim, want %d at most", pair, mostPair)
	}
	if pods > mostPod {
		t.Errorf("%d bytes for each pod, want %d at most", pods, mostPod)
	}
	runtime.KeepAlive(informers)
}

// withoutMutationDetector runs the test in a process of its own where client-go keeps a second copy of each cached object,
// and reports whether it did. client-go reads the variable when the program starts.
func withoutMutationDetector(t *testing.T) bool {
	t.Helper()
	const detector = "KUBE_CACHE_MUTATION_DETECTOR"
	if on, _ := strconv.ParseBool(os.Getenv(detector)); !on {
		return false
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$")
	run.Env = append(os.Environ(), detector+"=false")
	out, err := run.CombinedOutput()
	t.Logf("without %s:\n%s", detector, out)
	if err != nil {
		t.Errorf("without %s: %v", detector, err)
	}
	return true
}

// template returns an object of testdata as JSON. NNNNN, MMMMM and TTT in it are numbers.
func template(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// made decodes an object of a template into the object, with numbers in the places of the texts before them.
func made[O client.Object](t *testing.T, template string, object O, numbers ...any) O {
	t.Helper()
	for i := 0; i < len(numbers); i += 2 {
		text := numbers[i].(string)
		template = strings.ReplaceAll(template, text, fmt.Sprintf("%0*d", len(text), numbers[i+1]))
	}
	if err := json.Unmarshal([]byte(template), object); err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as clients decode it
	return object
}

// filled runs an informer until the handler has its first list.
func filled(t *testing.T, handler toolscache.ResourceEventHandler, informer toolscache.SharedIndexInformer,
	transform toolscache.TransformFunc) toolscache.SharedIndexInformer {
	t.Helper()
	if err := informer.SetTransform(transform); err != nil {
		t.Fatal(err)
	}
	of := informer
	if pods, ok := of.(podInformer); ok {
		of = pods.SharedIndexInformer
	}
	registration, err := of.AddEventHandler(handler)
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	if !toolscache.WaitForCacheSync(t.Context().Done(), registration.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	return informer
}
