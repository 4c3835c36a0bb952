package legacy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/legacy/nodelabel"
	"github.com/karpenter-go/karpenter/internal/legacy/provisioner"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Config is what the older versions need of the controller. All fields are required.
type Config struct {
	Manager  manager.Manager
	Provider cloud.Provider
	Pods     nodelabel.Pods
	Recorder *telemetry.Recorder
	Timers   controller.Timers
	Clock    clock.WithTicker
	// API connects to the API server without a cache, which cannot be filled before the webhook serves.
	API     *rest.Config
	Webhook Webhook
	// Kwok means that node classes are KWOKNodeClasses.
	Kwok bool
	// Before are the settings by names of before v1. ClusterName, InstanceProfile and Minor, the minor version of the
	// cluster (0: unknown), are others that older objects do not contain themselves.
	Before                       *Settings
	ClusterName, InstanceProfile string
	Minor                        func(context.Context) int
}

// Versions serves the older versions in a controller.
type Versions struct {
	Config
	labels      *nodelabel.Reconciler
	provisioner *provisioner.Reconciler
}

// New returns what serves the older versions. It runs once Setup has been called.
func New(c Config) *Versions {
	v := &Versions{Config: c}
	v.labels = &nodelabel.Reconciler{Client: c.Manager.GetClient(), Pods: c.Pods, Provider: c.Provider, Recorder: c.Recorder, Timers: c.Timers}
	v.provisioner = &provisioner.Reconciler{
		Client: c.Manager.GetClient(), Live: c.Manager.GetAPIReader(), Recorder: c.Recorder, Timers: c.Timers, Settings: v.settings,
		Simulated: c.Kwok,
	}
	return v
}

// Setup registers the controllers and the conversion webhook.
func (v *Versions) Setup(ctx context.Context) error {
	return errors.Join(v.addConversion(), v.labels.SetupWithManager(v.Manager), v.addProvisioner(ctx))
}

// Complete adds the old labels that pods use to a node that is about to accept pods, on the object only.
func (v *Versions) Complete(ctx context.Context, node *corev1.Node) error {
	return v.labels.Complete(ctx, node)
}

// addProvisioner starts the controller of Provisioners and AWSNodeTemplates, and notifies it when their definitions are
// served. An installation may never have these definitions.
func (v *Versions) addProvisioner(ctx context.Context) error {
	if err := v.provisioner.SetupWithManager(v.Manager); err != nil {
		return err
	}
	missing, err := v.serve(ctx, v.provisioner.Kinds())
	if err != nil || len(missing) == 0 {
		return err
	}
	log := v.Manager.GetLogger().WithName(provisioner.Name)
	log.Info("not all older kinds are served by the API server, and until they are nothing is made from older objects; "+
		"nothing else depends on them", "missing", missing)
	return v.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, v.Timers.ClassRecheck, false, func(ctx context.Context) (bool, error) {
			var err error
			if missing, err = v.serve(ctx, missing); err != nil {
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

// serve passes the kinds that the API server has to the controller, and returns the others.
func (v *Versions) serve(ctx context.Context, kinds []schema.GroupVersionKind) (missing []schema.GroupVersionKind, err error) {
	for i, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := v.Manager.GetAPIReader().List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			missing = append(missing, kind)
			continue
		case err != nil:
			return append(missing, kinds[i:]...), fmt.Errorf("looking for %s: %w", kind.Kind, err)
		}
		if err := v.provisioner.Serve(kind); err != nil {
			return append(missing, kinds[i:]...), err
		}
	}
	return missing, nil
}

// manyPods is the maximum number of pods of a node where network interfaces did not limit them.
const manyPods = 110

// settings returns the settings that older objects do not contain themselves.
func (v *Versions) settings(ctx context.Context) v1alpha5.Settings {
	before := v.Before.cluster
	s := v1alpha5.Settings{
		Kwok: v.Kwok, ClusterName: v.ClusterName, DefaultInstanceProfile: v.InstanceProfile, KubernetesMinor: v.Minor(ctx),
		Tags: before.Tags, Drift: before.Drift,
	}
	if before.ManyPods {
		s.MaxPods = manyPods
	}
	return s
}
