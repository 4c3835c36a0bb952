package loop

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Aside reports the claims and nodes that are set aside because they cannot be processed, once for each change: in
// the log, and in an event on the object. The provision loop reports pods that are set aside. Set the exported fields
// before Start.
type Aside struct {
	List func() []cluster.SetAside
	// Changed receives when the list may have changed.
	Changed  <-chan struct{}
	Recorder *telemetry.Recorder
	Log      logr.Logger

	// named holds the objects of the last pass, by kind and name.
	named map[string]cluster.SetAside
}

// Start reports objects that are set aside until the context ends.
func (a *Aside) Start(ctx context.Context) error {
	for {
		a.Tick()
		select {
		case <-ctx.Done():
			return nil
		case <-a.Changed:
		}
	}
}

// Tick runs one pass.
func (a *Aside) Tick() {
	before := a.named
	a.named = map[string]cluster.SetAside{}
	for _, object := range a.List() {
		about := reference(object)
		if about == nil {
			continue
		}
		key := object.Kind + " " + object.Name
		a.named[key] = object
		if before[key] == object {
			continue
		}
		a.Log.Info("an object is set aside", "kind", object.Kind, "name", object.Name, "field", object.Why.Field, "reason", object.Why.Reason)
		a.Recorder.Emit(telemetry.SetAside(about, fmt.Sprintf("%s: %s", object.Why.Field, object.Why.Reason)))
	}
	for key, object := range before {
		if _, still := a.named[key]; !still {
			a.Log.Info("an object is no longer set aside", "kind", object.Kind, "name", object.Name)
		}
	}
}

// reference returns the fields of the object that an event needs, or nil for kinds that are not reported here.
func reference(object cluster.SetAside) client.Object {
	meta := metav1.ObjectMeta{Name: object.Name, UID: object.UID}
	switch object.Kind {
	case "Node":
		return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: object.Kind}, ObjectMeta: meta}
	case "NodeClaim":
		return &karpv1.NodeClaim{TypeMeta: metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: object.Kind}, ObjectMeta: meta}
	}
	return nil
}
