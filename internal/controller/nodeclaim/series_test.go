package nodeclaim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestBeginSeries checks that the end of a claim begins a series of names if the claim may have its name from the
// current one, once for claims that end together, and that the end of a claim does not depend on it.
func TestBeginSeries(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "pool"}}
	refuse, late := false, false
	stale := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).Build()
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refuse {
				return errors.New("refused")
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if late {
				return stale.Get(ctx, key, o, opts...)
			}
			return c.Get(ctx, key, o, opts...)
		}}).Build()
	wrote := ""
	r := &Reconciler{Client: api, Wrote: func(o client.Object) { wrote = o.GetAnnotations()[karpv1.AnnotationClaimSeries] }}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(minute int) metav1.Time { return metav1.Time{Time: noon.Add(time.Duration(minute) * time.Minute)} }
	for _, test := range []struct {
		name             string
		created, deleted int
		began            bool
		change           func()
	}{
		{"the first that ends", 0, 5, true, nil},
		{"ended together with it", 4, 6, false, nil},
		{"created before the series, and ended much later", 1, 60, false, nil},
		{"of the series", 5, 5, true, nil},
		{"of the new one", 6, 7, true, nil},
		{"while the cache is older", 6, 8, false, func() { late = true }},
		{"after a restart", 6, 8, false, func() { r = &Reconciler{Client: api, Wrote: r.Wrote} }},
		{"of the series, after a restart", 7, 8, true, nil},
		{"a write that is refused", 9, 10, false, func() { refuse = true }},
		{"the next", 9, 10, true, func() { refuse = false }},
	} {
		if test.change != nil {
			test.change()
		}
		deleted := at(test.deleted)
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: types.UID(test.name),
			Labels:            map[string]string{karpv1.LabelNodePool: "p"},
			CreationTimestamp: at(test.created), DeletionTimestamp: &deleted}}
		wrote = ""
		if again, err := r.beginSeries(t.Context(), claim); again != 0 || err != nil {
			t.Fatalf("%s: again %v, %v", test.name, again, err)
		}
		late = false
		if err := api.Get(t.Context(), types.NamespacedName{Name: "p"}, pool); err != nil {
			t.Fatal(err)
		}
		got := pool.Annotations[karpv1.AnnotationClaimSeries]
		if began := strings.HasSuffix(got, "/"+test.name); began != test.began || (wrote == got) != test.began {
			t.Errorf("%s: the series is %q, told %q, want a new one: %t", test.name, got, wrote, test.began)
		}
	}
	orphan := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.LabelNodePool: "gone"}}}
	if again, err := r.beginSeries(t.Context(), orphan); again != 0 || err != nil {
		t.Errorf("without a pool: again %v, %v", again, err)
	}
}
