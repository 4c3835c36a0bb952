package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api"
	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/plugin/podusage"
)

// Cluster selects the cluster to read and its cloud provider.
type Cluster struct {
	Connection
	// CloudProvider is kwok, aws (AWS is then queried), or "" for the provider of the pools' node classes.
	CloudProvider string
	// MemoryOverhead and ReservedENIs are settings of the AWS provider.
	MemoryOverhead float64
	ReservedENIs   int64
	// Jobs also reads Jobs, which no decision depends on: they show which CronJob a pod belongs to.
	Jobs bool
	// Usage also reads what pods use, where the API server serves metrics.k8s.io.
	Usage bool
	aws   awsPrices
	// same is the client of both inputs of a comparison.
	same *sameLists
}

// Check rejects an unknown cloud, and settings that no provider uses.
func (l *Cluster) Check() error {
	switch {
	case !slices.Contains([]string{"", "kwok", "aws"}, l.CloudProvider):
		return inputErrorf("--cloud-provider is %q, want kwok or aws", l.CloudProvider)
	case !(l.MemoryOverhead >= 0 && l.MemoryOverhead < 1):
		return inputErrorf("--vm-memory-overhead-percent is %v, want 0 or more and less than 1 (0.075 is 7.5 per cent)", l.MemoryOverhead)
	case l.ReservedENIs < 0:
		return inputErrorf("--reserved-enis is %d, want 0 or more", l.ReservedENIs)
	}
	return nil
}

// PageSize is the number of objects per page of a list.
const PageSize = 1000

// read lists all objects that a decision depends on once, and adds them. Objects that are already present, from
// files, take precedence. read writes nothing and watches nothing.
func (l *Cluster) read(ctx context.Context, o *Manifests, instanceTypes string) error {
	c, err := l.connect()
	if err != nil {
		return err
	}
	o.whole = true
	lists := liveLists()
	if l.Jobs {
		lists = append(lists, &batchv1.JobList{})
	}
	for _, list := range lists {
		if err := l.list(ctx, c, o, list); err != nil {
			return err
		}
	}
	if l.Usage {
		if err := l.readUsage(ctx, c, o); err != nil {
			return err
		}
	}
	if err := l.readBuffers(ctx, c, o); err != nil {
		return err
	}
	if err := o.required(); err != nil {
		return err
	}
	return l.readCatalogs(ctx, c, o, instanceTypes)
}

// readUsage reads what pods use. An API server that does not serve it, or not now, is no error.
func (l *Cluster) readUsage(ctx context.Context, c client.Client, o *Manifests) error {
	err := l.list(ctx, c, o, &podusage.PodMetricsList{})
	switch {
	case apierrors.IsNotFound(err):
		o.noUsage = "no " + podusage.GroupVersion.Group + ": the API server does not serve it; metrics-server is a common source"
	case apierrors.IsServiceUnavailable(err):
		o.noUsage = "no " + podusage.GroupVersion.Group + ": its server does not answer now"
	case err != nil:
		return err
	case o.lacks(usageResource):
		o.noUsage = "no " + podusage.GroupVersion.Group + ": listing " + usageResource + " is not allowed"
	}
	return nil
}

// liveLists returns the kinds that a decision depends on.
func liveLists() []client.ObjectList {
	return []client.ObjectList{
		&karpv1.NodePoolList{}, &karpv1.NodeClaimList{}, &karpv1alpha1.NodeOverlayList{},
		&autoscalingv1beta1.CapacityQuotaList{}, &corev1.NodeList{}, &corev1.PodList{}, &appsv1.DaemonSetList{},
		&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &storagev1.StorageClassList{}, &storagev1.CSINodeList{},
		&corev1.NamespaceList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.ServiceList{}, &corev1.ReplicationControllerList{},
		&appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}, &corev1.LimitRangeList{}, &nodev1.RuntimeClassList{}, &schedulingv1.PriorityClassList{},
	}
}

// connect returns a client for the required kinds. It sends no discovery requests: the paths of the kinds are fixed.
func (l *Cluster) connect() (client.Client, error) {
	if l.same != nil && l.same.Client != nil {
		return l.same, nil
	}
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	scheme, err := api.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := podusage.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: liveKinds()})
	if err != nil {
		return nil, inputErrorf("reading the kubeconfig: %w", err)
	}
	if l.same != nil {
		l.same.Client = c
		return l.same, nil
	}
	return c, nil
}

// liveKinds returns the resource paths of the kinds that are read.
func liveKinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(v schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			m.Add(v.WithKind(kind), scope)
		}
	}
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Pod", "PersistentVolumeClaim", "Service", "ReplicationController", "ConfigMap",
		"LimitRange", "Event", "ResourceQuota", "PodTemplate")
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Node", "Namespace", "PersistentVolume")
	add(appsv1.SchemeGroupVersion, meta.RESTScopeNamespace, "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
	add(batchv1.SchemeGroupVersion, meta.RESTScopeNamespace, "CronJob", "Job")
	add(storagev1.SchemeGroupVersion, meta.RESTScopeRoot, "StorageClass", "CSINode")
	add(nodev1.SchemeGroupVersion, meta.RESTScopeRoot, "RuntimeClass")
	add(schedulingv1.SchemeGroupVersion, meta.RESTScopeRoot, "PriorityClass")
	add(policyv1.SchemeGroupVersion, meta.RESTScopeNamespace, "PodDisruptionBudget")
	add(karpv1.GroupVersion, meta.RESTScopeRoot, "NodePool", "NodeClaim")
	// The guess of the plural would be nodeoverlaies.
	m.AddSpecific(karpv1alpha1.GroupVersion.WithKind(karpv1alpha1.Kind), karpv1alpha1.GroupVersion.WithResource("nodeoverlays"),
		karpv1alpha1.GroupVersion.WithResource("nodeoverlay"), meta.RESTScopeRoot)
	m.AddSpecific(podusage.GroupVersion.WithKind("PodMetrics"), podusage.Resource, podusage.Resource, meta.RESTScopeNamespace)
	add(autoscalingv1beta1.GroupVersion, meta.RESTScopeNamespace, autoscalingv1beta1.Kind)
	add(autoscalingv1beta1.GroupVersion, meta.RESTScopeRoot, autoscalingv1beta1.KindQuota)
	add(kwokv1alpha1.GroupVersion, meta.RESTScopeRoot, "KWOKNodeClass")
	add(awsv1.GroupVersion, meta.RESTScopeRoot, awsv1.Kind)
	return m
}

// list adds all objects of a kind, page by page. It records a kind that the user may not list.
func (l *Cluster) list(ctx context.Context, c client.Client, o *Manifests, list client.ObjectList) error {
	kind, err := c.GroupVersionKindFor(list)
	if err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	for {
		if err := c.List(ctx, list, client.Limit(PageSize), client.Continue(list.GetContinue())); err != nil {
			if apierrors.IsNotFound(err) && (kind.Kind == karpv1alpha1.Kind || kind.Group == autoscalingv1beta1.Group) { // an optional kind
				return nil
			}
			if apierrors.IsNotFound(err) && (kind.Group == karpv1.GroupVersion.Group || kind.Group == awsv1.Group) {
				return fmt.Errorf("listing objects of kind %s: the API server does not serve %s; install the CRDs first: kubectl apply -f api/crds/", kind.Kind, kind.GroupVersion())
			}
			if o.deny("list", mapping.Resource.GroupResource().String(), err) {
				return nil
			}
			return fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		if err := meta.EachListItem(list, func(object runtime.Object) error { return o.takeLive(kind, object) }); err != nil {
			return err
		}
		if list.GetContinue() == "" {
			return nil
		}
	}
}

// takeLive adds an object of a cluster unchanged.
func (o *Manifests) takeLive(kind schema.GroupVersionKind, object runtime.Object) error {
	object = capture.Trimmed(object, kind) // a copy: the list is reused for the next page
	if class, ok := object.(*awsv1.EC2NodeClass); ok {
		o.resolveClass(class)
	}
	if !o.take("the cluster", object, true) || !o.keep {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding an object of the cluster: %w", err)
	}
	o.seenIn = append(o.seenIn, text)
	return nil
}
