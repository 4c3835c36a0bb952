// Package rejected reports the claims, nodes and DaemonSets that package cluster cannot process.
//
//	cluster.Store: list of rejected objects, channel --> Reporter.Tick --> log lines, events SetAside
//
// It decides nothing.
package rejected

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Reporter reports the claims, nodes and DaemonSets that are set aside because they cannot be processed, once for each
// change: in the log, and in an event on the object. The provision loop reports pods that are set aside. Set the exported fields
// before Start.
type Reporter struct {
	List func() []state.RejectedObject
	// Changed receives when the list may have changed.
	Changed  <-chan struct{}
	Recorder *telemetry.Recorder
	Log      logr.Logger

	// named holds the objects of the last pass, by kind and name.
	named map[string]state.RejectedObject
}

// Start reports objects that are set aside until the context ends.
func (r *Reporter) Start(ctx context.Context) error {
	for {
		r.Tick()
		select {
		case <-ctx.Done():
			return nil
		case <-r.Changed:
		}
	}
}

// Tick runs one pass.
func (r *Reporter) Tick() {
	before := r.named
	r.named = map[string]state.RejectedObject{}
	for _, object := range r.List() {
		about := reference(object)
		if about == nil {
			continue
		}
		key := object.Kind + " " + object.Name
		r.named[key] = object
		if before[key] == object {
			continue
		}
		r.Log.Info("an object is set aside", "kind", object.Kind, "name", object.Name, "field", object.Why.Field, "reason", object.Why.Reason)
		r.Recorder.Emit(telemetry.SetAside(about, fmt.Sprintf("%s: %s", object.Why.Field, object.Why.Reason)))
	}
	for key, object := range before {
		if _, still := r.named[key]; !still {
			r.Log.Info("an object is no longer set aside", "kind", object.Kind, "name", object.Name)
		}
	}
}

// reference returns the fields of the object that an event needs, or nil for kinds that are not reported here.
func reference(object state.RejectedObject) client.Object {
	switch object.Kind {
	case "Node":
		return telemetry.NodeObject(object.Name, string(object.UID))
	case "NodeClaim":
		return telemetry.ClaimObject(object.Name, string(object.UID))
	case "DaemonSet":
		namespace, name, _ := strings.Cut(object.Name, "/")
		return telemetry.DaemonObject(namespace, name, string(object.UID))
	}
	return nil
}
