package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/karpenter-go/karpenter/internal/cluster/record"
)

// pagedServer serves pods in pages, and no streamed lists.
type pagedServer struct {
	pods  []corev1.Pod
	asked []string
	later *watch.FakeWatcher
}

func (s *pagedServer) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.asked = append(s.asked, fmt.Sprintf("%q limit %d from %q", o.ResourceVersion, o.Limit, o.Continue))
	from, _ := strconv.Atoi(o.Continue)
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := from; i < len(s.pods) && len(list.Items) < int(o.Limit); i++ {
		list.Items = append(list.Items, *s.pods[i].DeepCopy())
	}
	if end := from + len(list.Items); end < len(s.pods) {
		list.Continue = strconv.Itoa(end)
	}
	return list, nil
}

func (s *pagedServer) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "", nil)
	}
	return s.later, nil
}

// boundPods returns bound pods, ten on each node.
func boundPods(n int) []corev1.Pod {
	pods := make([]corev1.Pod, n)
	for i := range pods {
		pods[i] = corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%04d", i), Namespace: "shop", UID: types.UID(fmt.Sprint("uid-", i)),
				ResourceVersion: "1"},
			Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i/10), Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
	}
	return pods
}

// TestPodInformer checks that an informer reads pods in pages, holds records, and shows whole pods by all its methods.
func TestPodInformer(t *testing.T) {
	s := &pagedServer{pods: boundPods(1001), later: watch.NewFake()}
	s.pods[1000].Spec.NodeName = "" // stays whole
	options := CacheOptions(nil, func(error) {})
	lw := &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	informer := options.NewInformer(lw, &corev1.Pod{}, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := informer.SetTransform(options.DefaultTransform); err != nil {
		t.Fatal(err)
	}
	nodeOf := func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }
	err := informer.AddIndexers(toolscache.Indexers{"node": nodeOf})
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 2000)
	say := func(kind string, o any) {
		events <- kind + " " + o.(*corev1.Pod).Name + " on " + o.(*corev1.Pod).Spec.NodeName
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { say("add", o) },
		UpdateFunc: func(_, o any) { say("update", o) },
		DeleteFunc: func(o any) { say("delete", o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	for range s.pods {
		<-events
	}
	want := []string{`"" limit 500 from ""`, `"" limit 500 from "500"`, `"" limit 500 from "1000"`}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	checkIndexer(t, informer)
	changed := s.pods[7].DeepCopy()
	changed.ResourceVersion, changed.Status.Phase = "2", corev1.PodSucceeded
	s.later.Modify(changed)
	s.later.Delete(&s.pods[8])
	if got := []string{<-events, <-events}; !slices.Equal(got, []string{"update pod-0007 on node-0", "delete pod-0008 on node-0"}) {
		t.Errorf("events: %q", got)
	}
}

// checkIndexer checks that the informer holds records, and that its readers see whole pods without an image.
func checkIndexer(t *testing.T, informer toolscache.SharedIndexInformer) {
	t.Helper()
	records := 0
	for _, o := range informer.(podInformer).SharedIndexInformer.GetStore().List() {
		if _, is := o.(*record.Pod); is {
			records++
		}
	}
	if records != 1000 {
		t.Errorf("%d records, want 1000", records)
	}
	indexer := informer.GetIndexer()
	one, _, _ := indexer.GetByKey("shop/pod-0007")
	same, _, _ := indexer.Get(one)
	on, _ := indexer.ByIndex("node", "node-0")
	beside, _ := indexer.Index("node", one)
	unbound, _ := indexer.ByIndex("node", "")
	for what, list := range map[string][]any{"one": {one, same}, "node": on, "beside": beside, "unbound": unbound,
		"all": informer.GetStore().List()} {
		if want := map[string]int{"one": 2, "node": 10, "beside": 10, "unbound": 1, "all": 1001}[what]; len(list) != want {
			t.Errorf("%s: %d pods, want %d", what, len(list), want)
		}
		for _, o := range list {
			if pod, is := o.(*corev1.Pod); !is || pod.Namespace != "shop" || pod.Spec.Containers[0].Image != "" {
				t.Errorf("%s: %v", what, o)
			}
		}
	}
}
