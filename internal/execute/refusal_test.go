package execute_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

func (w *written) Refuse(pool, uid, why string) { w.add("refused " + pool + " " + uid + ": " + why) }

// TestRefusedClaim verifies that a response that would be the same again is reported to the store and to users. A
// response that may change is only an error.
func TestRefusedClaim(t *testing.T) {
	claims := schema.GroupResource{Group: karpv1.Group, Resource: "nodeclaims"}
	for _, test := range []struct {
		name    string
		answer  error
		refused bool
	}{
		{"admission policy", apierrors.NewForbidden(claims, "p-1", errors.New("no nodes on Fridays")), true},
		{"not valid", apierrors.NewInvalid(schema.GroupKind{Group: karpv1.Group, Kind: "NodeClaim"}, "p-1", nil), true},
		{"webhook", apierrors.NewBadRequest("no"), true},
		{"conflict", apierrors.NewConflict(claims, "p-1", errors.New("again")), false},
		{"overload", apierrors.NewTooManyRequests("later", 1), false},
		{"etcd", apierrors.NewInternalError(errors.New("request timed out")), false},
		{"none", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := karpv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return test.answer
				},
			}).Build()
			store, sink := &written{}, events.NewFakeRecorder(10)
			x := &execute.Executor{Client: c, Live: c, Store: store, Metrics: telemetry.New(prometheus.NewRegistry()),
				Recorder: telemetry.NewRecorder(sink, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))}
			create := plan.CreateClaim{NewClaim: planned("p-1", pool)}
			err := x.Do(t.Context(), []plan.Action{create})[0].Err
			if !errors.Is(err, test.answer) {
				t.Errorf("outcome %v, want %v", err, test.answer)
			}
			if !test.refused {
				if got := strings.Join(store.take(), ""); strings.Contains(got, "refused") || len(sink.Events) > 0 {
					t.Errorf("reported %q to the store and %d events, want no report of a rejection", got, len(sink.Events))
				}
				return
			}
			if diff := cmp.Diff([]string{"refused p uid: " + test.answer.Error()}, store.take()); diff != "" {
				t.Errorf("reported to the store (-want +got):\n%s", diff)
			}
			if got := <-sink.Events; !strings.HasPrefix(got, "Warning ClaimRefused ") || !strings.Contains(got, test.answer.Error()) {
				t.Errorf("event %q", got)
			}
		})
	}
}
