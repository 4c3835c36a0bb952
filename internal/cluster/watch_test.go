package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// lister responds to lists of workloads with an error.
type lister struct {
	client.Reader
	errs map[string]error
}

func (l lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list.(type) {
	case *appsv1.ReplicaSetList:
		return l.errs["ReplicaSet"]
	case *appsv1.StatefulSetList:
		return l.errs["StatefulSet"]
	case *batchv1.JobList:
		return l.errs["Job"]
	}
	return errors.New("not a list of workloads")
}

// TestWatchWithoutRights: kinds that only virtual pods need are left out where the process may not list them, and the store
// is complete without them. Other errors, and other kinds, are left to the informers.
func TestWatchWithoutRights(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right"))
	plain, spread := state.Config{Replicas: true}, state.Config{Replicas: true, DefaultSpread: []corev1.TopologySpreadConstraint{{}}}
	all := []string{"Job", "ReplicaSet", "StatefulSet"}
	for name, c := range map[string]struct {
		config state.Config
		errs   map[string]error
		want   []string // of the three kinds of workloads
	}{
		"all rights":           {plain, nil, all},
		"no right to Jobs":     {plain, map[string]error{"Job": refused}, []string{"ReplicaSet", "StatefulSet"}},
		"none of the rights":   {plain, map[string]error{"Job": refused, "ReplicaSet": refused, "StatefulSet": refused}, nil},
		"no answer":            {plain, map[string]error{"Job": errors.New("EOF")}, all},
		"for default spread":   {spread, map[string]error{"ReplicaSet": refused}, all},
		"without virtual pods": {state.Config{}, map[string]error{"Job": refused}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := scheme(t)
			if err := batchv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, Config{State: c.config, Live: lister{errs: c.errs}})
			informers := &informertest.FakeInformers{Scheme: scheme}
			if err := s.Watch(t.Context(), informers); err != nil {
				t.Fatal(err)
			}
			var got []string
			for kind := range informers.InformersByGVK {
				if slices.Contains([]string{"Job", "ReplicaSet", "StatefulSet"}, kind.Kind) {
					got = append(got, kind.Kind)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("watched workloads (-want +got):\n%s", diff)
			}
			if !s.Synced() {
				t.Error("the store is not complete")
			}
		})
	}
}
