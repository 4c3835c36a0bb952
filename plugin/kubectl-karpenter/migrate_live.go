package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/legacy/migrate"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// liveKind is a kind that migrate reads from a cluster.
type liveKind struct {
	schema.GroupKind
	names   []string // of single objects; empty: all
	witness bool     // its objects only identify the cloud, if they may be read
}

// migratedKinds are Karpenter's kinds in any version, the settings, and the kinds that create pods. NodeClaims are
// created only by the controller.
var migratedKinds = []liveKind{
	{GroupKind: schema.GroupKind{Group: karpv1.Group, Kind: "Provisioner"}},
	{GroupKind: schema.GroupKind{Group: awsv1.Group, Kind: "AWSNodeTemplate"}},
	{GroupKind: schema.GroupKind{Group: karpv1.Group, Kind: "NodePool"}},
	{GroupKind: schema.GroupKind{Group: awsv1.Group, Kind: "EC2NodeClass"}},
	{GroupKind: schema.GroupKind{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass"}},
	{GroupKind: schema.GroupKind{Group: karpv1.Group, Kind: "NodeClaim"}, witness: true},
	{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, names: []string{migrate.GlobalSettings, "cluster-autoscaler-priority-expander"}},
	{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}},
	{GroupKind: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}},
	{GroupKind: schema.GroupKind{Group: "apps", Kind: "DaemonSet"}},
	{GroupKind: schema.GroupKind{Group: "batch", Kind: "CronJob"}},
	{GroupKind: schema.GroupKind{Kind: "Node"}},
}

// clusterContents holds all objects of a cluster that migrate processes.
type clusterContents struct {
	file   migrate.File
	minor  int // of the API server's version, 0 if it is not known
	clouds witnesses
}

func readCluster(ctx context.Context, to *offline.Connection) (*clusterContents, error) {
	config, err := to.Config()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, cli.UsageErrorf("reading the kubeconfig: %w", err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, cli.UsageErrorf("reading the kubeconfig: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err != nil {
		minor = 0 // some clouds use another format; images are then chosen as for an unknown version
	}
	cluster := &clusterContents{minor: minor}
	var text bytes.Buffer
	for _, kind := range migratedKinds {
		err := kind.list(ctx, c, to.Namespace, func(object *unstructured.Unstructured) error {
			cluster.clouds.add(object)
			if kind.witness {
				return nil
			}
			return addObject(&text, object)
		})
		if err != nil && !(kind.witness && apierrors.IsForbidden(err)) {
			return nil, err
		}
	}
	cluster.file = migrate.File{Name: "the cluster", Text: text.Bytes(), Live: true}
	return cluster, nil
}

// list passes the objects of one kind to give, in the newest served version. Workloads are limited to the namespace,
// if one is given. The settings are read from every namespace.
func (k liveKind) list(ctx context.Context, c client.Client, namespace string, give func(*unstructured.Unstructured) error) error {
	mapping, err := c.RESTMapper().RESTMapping(k.GroupKind)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking for the versions of %s: %w", k.Kind, err)
	}
	names := k.names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		options := []client.ListOption{client.Limit(offline.PageSize)}
		if name != "" {
			options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
		}
		if namespace != "" && name == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			options = append(options, client.InNamespace(namespace))
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		for {
			if err := c.List(ctx, list, append(options, client.Continue(list.GetContinue()))...); err != nil {
				return fmt.Errorf("listing objects of kind %s: %w", k.Kind, err)
			}
			for i := range list.Items {
				if err := give(&list.Items[i]); err != nil {
					return err
				}
			}
			if list.GetContinue() == "" {
				break
			}
		}
	}
	return nil
}

// addObject writes an object, unless a controller created it: it then follows from its owner.
func addObject(text *bytes.Buffer, object *unstructured.Unstructured) error {
	if metav1.GetControllerOf(object) != nil {
		return nil
	}
	encoded, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding an object of the cluster: %w", err)
	}
	text.WriteString("---\n")
	text.Write(encoded)
	return nil
}
