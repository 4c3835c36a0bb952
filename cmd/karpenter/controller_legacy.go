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

	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	controllerlegacy "github.com/karpenter-go/karpenter/internal/controller/legacy"
	"github.com/karpenter-go/karpenter/internal/legacy"
)

// addLegacy starts the controller of Provisioners and AWSNodeTemplates as soon as their definitions are served, which may
// be never: an installation without them is complete.
func (w *wiring) addLegacy(ctx context.Context) error {
	served, err := w.legacyServed(ctx)
	if err != nil {
		return err
	}
	if served {
		return w.legacy().SetupWithManager(w.mgr)
	}
	log := w.mgr.GetLogger().WithName(controllerlegacy.Name)
	log.Info("Provisioners and AWSNodeTemplates are not served by the API server and are looked for again; nothing else depends on them")
	return w.mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, w.o.timers.ClassRecheck, false, func(ctx context.Context) (bool, error) {
			served, err := w.legacyServed(ctx)
			if err != nil {
				log.Error(err, "looking for Provisioners; it is tried again")
			}
			return served && err == nil, nil
		})
		if err != nil {
			return nil // the program ends
		}
		log.Info("Provisioners are served now")
		return w.legacy().SetupWithManager(w.mgr)
	}))
}

// legacyServed says whether all definitions that the controller needs are there.
func (w *wiring) legacyServed(ctx context.Context) (bool, error) {
	kinds := []schema.GroupVersionKind{karpv1alpha5.GroupVersion.WithKind(karpv1alpha5.Kind)}
	if w.o.cloudProvider == "aws" {
		kinds = append(kinds, awsv1alpha1.GroupVersion.WithKind(awsv1alpha1.Kind))
	}
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := w.mgr.GetAPIReader().List(ctx, list, client.Limit(1))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("looking for %s: %w", kind.Kind, err)
		}
	}
	return true, nil
}

func (w *wiring) legacy() *controllerlegacy.Reconciler {
	return &controllerlegacy.Reconciler{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Recorder: w.recorder, Timers: w.o.timers, Settings: w.legacySettings,
		Simulated: w.o.cloudProvider == "kwok",
	}
}

// manyPods is how many pods a node took where network interfaces did not limit them.
const manyPods = 110

// legacySettings are what older objects do not say themselves.
func (w *wiring) legacySettings(ctx context.Context) legacy.Settings {
	before := w.o.older.cluster
	s := legacy.Settings{
		Kwok: w.o.cloudProvider == "kwok", ClusterName: w.o.aws.clusterName, DefaultInstanceProfile: w.o.aws.instanceProfile,
		Tags: before.Tags, Drift: before.Drift,
	}
	if before.ManyPods {
		s.MaxPods = manyPods
	}
	if provider, isAWS := w.provider.(*aws.Provider); isAWS {
		facts, _ := provider.Sources().Cluster.Facts(ctx) // the last ones do, with an error or without; the start has waited for some
		_, minor, _ := strings.Cut(facts.Version, ".")
		s.KubernetesMinor, _ = strconv.Atoi(minor)
	}
	return s
}
