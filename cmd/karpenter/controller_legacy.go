package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/legacy/provisioner"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// addLegacy starts the controller of Provisioners and AWSNodeTemplates, and notifies it when their definitions are
// served. An installation may never have these definitions.
func (w *wiring) addLegacy(ctx context.Context) error {
	older := w.legacy()
	if err := older.SetupWithManager(w.mgr); err != nil {
		return err
	}
	missing, err := w.serveLegacy(ctx, older, older.Kinds())
	if err != nil || len(missing) == 0 {
		return err
	}
	log := w.mgr.GetLogger().WithName(provisioner.Name)
	log.Info("not all older kinds are served by the API server, and until they are nothing is made from older objects; nothing else depends on them", "missing", missing)
	return w.mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, w.o.timers.ClassRecheck, false, func(ctx context.Context) (bool, error) {
			var err error
			if missing, err = w.serveLegacy(ctx, older, missing); err != nil {
				log.Error(err, "looking for older kinds; it is tried again")
			}
			return len(missing) == 0, nil
		})
		if err != nil {
			return nil // the program ends
		}
		log.Info("all older kinds are served now")
		return nil
	}))
}

// serveLegacy passes the kinds that are served to the controller, and returns the others.
func (w *wiring) serveLegacy(ctx context.Context, older *provisioner.Reconciler, kinds []schema.GroupVersionKind) (missing []schema.GroupVersionKind, err error) {
	for i, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := w.mgr.GetAPIReader().List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			missing = append(missing, kind)
			continue
		case err != nil:
			return append(missing, kinds[i:]...), fmt.Errorf("looking for %s: %w", kind.Kind, err)
		}
		if err := older.Serve(kind); err != nil {
			return append(missing, kinds[i:]...), err
		}
	}
	return missing, nil
}

func (w *wiring) legacy() *provisioner.Reconciler {
	return &provisioner.Reconciler{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Recorder: w.recorder, Timers: w.o.timers, Settings: w.legacySettings,
		Simulated: w.o.cloudProvider == "kwok",
	}
}

// manyPods is the maximum number of pods of a node where network interfaces did not limit them.
const manyPods = 110

// legacySettings returns the settings that older objects do not contain themselves.
func (w *wiring) legacySettings(ctx context.Context) v1alpha5.Settings {
	before := w.o.older.cluster
	s := v1alpha5.Settings{
		Kwok: w.o.cloudProvider == "kwok", ClusterName: w.o.aws.clusterName, DefaultInstanceProfile: w.o.aws.instanceProfile,
		Tags: before.Tags, Drift: before.Drift,
	}
	if before.ManyPods {
		s.MaxPods = manyPods
	}
	if provider, isAWS := w.provider.(*aws.Provider); isAWS {
		// On an error, the last known facts suffice; the start has waited for the first ones.
		facts, _ := provider.Sources().Cluster.Facts(ctx)
		_, minor, _ := strings.Cut(facts.Version, ".")
		s.KubernetesMinor, _ = strconv.Atoi(minor)
	}
	return s
}
