package fakeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// connect starts a server and returns how to reach it.
func connect(t *testing.T, options Options) (*Running, *rest.Config) {
	t.Helper()
	options.Minor = 36
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	running, err := Start(server, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Close)
	text, err := running.Kubeconfig("test")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return running, config
}

// stored returns an object as kube-apiserver stores it.
func stored(t *testing.T, o client.Object) Stored {
	t.Helper()
	if _, custom := o.(*karpv1.NodeClaim); custom {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return Stored{Value: text}
	}
	var text bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(o, &text); err != nil {
		t.Fatal(err)
	}
	return Stored{Value: text.Bytes()}
}

const (
	claimUID = types.UID("22222222-2222-2222-2222-222222222222")
	nodeUID  = types.UID("33333333-3333-3333-3333-333333333333")
	podUID   = types.UID("44444444-4444-4444-4444-444444444444")
)

// small is a sample with a namespace and a daemon's pod, a claim, its node and a pod in each block.
func small(t *testing.T) *Sample {
	t.Helper()
	const claim, node = "loaded-abcdefgh", "kwok-loaded-abcdefgh-xyz12"
	namespace := fmt.Sprintf(Namespace, 0)
	meta := func(kind, apiVersion string) metav1.TypeMeta {
		return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
	}
	s := &Sample{
		Once: []Stored{stored(t, &corev1.Namespace{TypeMeta: meta("Namespace", "v1"),
			ObjectMeta: metav1.ObjectMeta{Name: "loaded", UID: "11111111-1111-1111-1111-111111111111"}})},
		Each: []Stored{
			stored(t, &karpv1.NodeClaim{TypeMeta: meta("NodeClaim", "karpenter.sh/v1"), ObjectMeta: metav1.ObjectMeta{Name: claim, UID: claimUID},
				Status: karpv1.NodeClaimStatus{NodeName: node, ProviderID: "kwok://" + claim}}),
			stored(t, &corev1.Node{TypeMeta: meta("Node", "v1"),
				ObjectMeta: metav1.ObjectMeta{Name: node, UID: nodeUID, Labels: map[string]string{"kubernetes.io/hostname": node},
					OwnerReferences: []metav1.OwnerReference{{Name: claim, UID: claimUID}}}, Spec: corev1.NodeSpec{ProviderID: "kwok://" + claim}}),
			stored(t, &corev1.Pod{TypeMeta: meta("Pod", "v1"),
				ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: namespace, UID: podUID, Labels: map[string]string{"app": "shop"}},
				Spec: corev1.PodSpec{NodeName: node,
					Containers: []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "OF", Value: namespace}}}}}}),
			stored(t, &corev1.Pod{TypeMeta: meta("Pod", "v1"), ObjectMeta: metav1.ObjectMeta{Name: "agent-q2w3e", Namespace: "loaded"},
				Spec: corev1.PodSpec{NodeName: node}}),
		},
		Claims: []string{claim}, DaemonPods: []string{"agent-q2w3e"}, Nodes: []string{node}, Pods: []string{"app-1"},
	}
	s.UIDs = UIDsOf(s.Each, UIDsOf(s.Once, nil))
	return s
}

// wanted decodes the objects of a kind of all blocks.
func wanted[T any](t *testing.T, s *Sample, blocks int, kind string) map[string]T {
	t.Helper()
	all := map[string]T{}
	for block := range blocks {
		for _, stored := range s.Block(block) {
			content, err := decode(stored.Value)
			if err != nil {
				t.Fatal(err)
			}
			if content.GetKind() != kind {
				continue
			}
			content.SetResourceVersion(fmt.Sprint(firstVersion))
			content.SetAPIVersion("") // typed clients read objects without it
			content.SetKind("")
			var o T
			if err := typed(content, &o); err != nil {
				t.Fatal(err)
			}
			all[keyOf(content.GetNamespace(), content.GetName())] = o
		}
	}
	return all
}

// TestCopies checks that each way to read shows the same objects: those of the sample under the names of each block.
func TestCopies(t *testing.T) {
	const blocks = 40
	s := small(t)
	_, config := connect(t, Options{Sample: s, Blocks: blocks})
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	pods, claims := wanted[corev1.Pod](t, s, blocks, "Pod"), wanted[karpv1.NodeClaim](t, s, blocks, "NodeClaim")
	if len(pods) != 2*blocks || len(claims) != blocks {
		t.Fatalf("the sample has %d pods and %d claims", len(pods), len(claims))
	}
	list := &corev1.PodList{}
	got := map[string]corev1.Pod{}
	for more := true; more; more = list.Continue != "" {
		if err := c.List(t.Context(), list, client.Limit(7), client.Continue(list.Continue)); err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			got[keyOf(pod.Namespace, pod.Name)] = pod
		}
	}
	if diff := cmp.Diff(pods, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	whole := &unstructured.UnstructuredList{}
	whole.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.List(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if len(whole.Items) != len(pods) {
		t.Errorf("%d pods in JSON, want %d", len(whole.Items), len(pods))
	}
	claim := &karpv1.NodeClaim{}
	for key, want := range claims {
		if err := c.Get(t.Context(), types.NamespacedName{Name: key[1:]}, claim); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *claim); diff != "" {
			t.Errorf("claim %s (-want +got):\n%s", key, diff)
		}
	}
	selected(t, c, pods)
	informed(t, config, pods)
}

// selected checks the selectors that the controller and kubelets use.
func selected(t *testing.T, c client.Client, pods map[string]corev1.Pod) {
	t.Helper()
	list := &corev1.PodList{}
	one := pods["block-0007/app-1"]
	if err := c.List(t.Context(), list, client.MatchingFields{"spec.nodeName": one.Spec.NodeName}); err != nil || len(list.Items) != 2 {
		t.Errorf("node %s has %d pods, %v, want 2", one.Spec.NodeName, len(list.Items), err)
	}
	if err := c.List(t.Context(), list, client.InNamespace("block-0007"), client.MatchingLabels{"app": "shop"}); err != nil ||
		len(list.Items) != 1 {
		t.Errorf("the namespace has %d pods, %v, want 1", len(list.Items), err)
	}
	if len(list.Items) == 1 && list.Items[0].UID != one.UID {
		t.Errorf("the pod has the UID %s, want %s", list.Items[0].UID, one.UID)
	}
}

// informed checks that informers show the same, of whole objects and of their metadata.
func informed(t *testing.T, config *rest.Config, pods map[string]corev1.Pod) {
	t.Helper()
	informers, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	part := &metav1.PartialObjectMetadata{}
	part.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	for _, kind := range []client.Object{&corev1.Pod{}, part} {
		if _, err := informers.GetInformer(t.Context(), kind, cache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _ = informers.Start(t.Context()) }()
	if !informers.WaitForCacheSync(t.Context()) {
		t.Fatal("the informers do not sync")
	}
	list, meta := &corev1.PodList{}, &metav1.PartialObjectMetadataList{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := informers.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := informers.List(t.Context(), meta); err != nil {
		t.Fatal(err)
	}
	seen := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pod.TypeMeta = metav1.TypeMeta{} // which caches set
		seen[keyOf(pod.Namespace, pod.Name)] = pod
	}
	if diff := cmp.Diff(pods, seen); diff != "" {
		t.Errorf("informer (-want +got):\n%s", diff)
	}
	if len(meta.Items) != len(pods) {
		t.Errorf("metadata of %d pods, want %d", len(meta.Items), len(pods))
	}
	for _, item := range meta.Items {
		if diff := cmp.Diff(pods[keyOf(item.Namespace, item.Name)].ObjectMeta, item.ObjectMeta); diff != "" {
			t.Errorf("metadata of %s (-want +got):\n%s", item.Name, diff)
		}
	}
}

// TestFaults checks that an informer survives each fault and sees what was written meanwhile, and that the requests are
// refused as kube-apiserver refuses them.
func TestFaults(t *testing.T) {
	running, config := connect(t, Options{Sample: small(t), Blocks: 3})
	running.SetFaults(Faults{NoWatchList: true})
	informers, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	informer, err := informers.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	added := func(o any) { seen <- o.(client.Object).GetName() }
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: added}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(t.Context()) }()
	if !informers.WaitForCacheSync(t.Context()) {
		t.Fatal("the informers do not sync without WatchList")
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct {
		name   string
		strike func()
	}{
		{"none", func() {}},
		{"closed", func() { running.CloseWatches(false) }},
		{"gone", func() { running.CloseWatches(true) }},
	} {
		fault.strike()
		if err := c.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fault.name}}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.After(time.Minute); ; {
			select {
			case name := <-seen:
				if name != fault.name {
					continue
				}
			case <-deadline:
				t.Fatalf("the informer does not see a pod after the fault %q", fault.name)
			}
			break
		}
	}
	running.SetFaults(Faults{PerSecond: 1, RetryAfter: 7})
	raw, err := rest.UnversionedRESTClientFor(withCodec(config))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 3 {
		err := raw.Get().AbsPath("/api/v1/nodes").MaxRetries(0).Do(t.Context()).Error()
		if after, wait := apierrors.SuggestsClientDelay(err); apierrors.IsTooManyRequests(err) && wait && after == 7 {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d of 3 requests are refused with Retry-After, want 2", refused)
	}
}

// withCodec makes the config one for a client without a group.
func withCodec(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = codecs.WithoutConversion()
	return config
}
