package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

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
	"github.com/karpenter-go/karpenter/internal/migrate"
)

// liveKind is a kind that migrating reads from a cluster.
type liveKind struct {
	schema.GroupKind
	names []string // of single objects; none: all
}

// migratedKinds are ours in any version, the settings, and what makes pods. NodeClaims are the controller's own.
var migratedKinds = []liveKind{
	{GroupKind: schema.GroupKind{Group: karpv1.Group, Kind: "Provisioner"}},
	{GroupKind: schema.GroupKind{Group: awsv1.Group, Kind: "AWSNodeTemplate"}},
	{GroupKind: schema.GroupKind{Group: karpv1.Group, Kind: "NodePool"}},
	{GroupKind: schema.GroupKind{Group: awsv1.Group, Kind: "EC2NodeClass"}},
	{schema.GroupKind{Kind: "ConfigMap"}, []string{migrate.GlobalSettings, "cluster-autoscaler-priority-expander"}},
	{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}},
	{GroupKind: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}},
	{GroupKind: schema.GroupKind{Group: "apps", Kind: "DaemonSet"}},
	{GroupKind: schema.GroupKind{Group: "batch", Kind: "CronJob"}},
	{GroupKind: schema.GroupKind{Kind: "Node"}},
}

// readCluster is everything of a cluster that migrating is about, as one file, and the minor version of its API server.
func readCluster(ctx context.Context, kubeconfig string) (migrate.File, int, error) {
	file := migrate.File{Name: "the cluster"}
	live := liveOptions{kubeconfig: kubeconfig}
	config, err := live.config()
	if err != nil {
		return file, 0, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return file, 0, usageErrorf("reading the kubeconfig: %w", err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return file, 0, usageErrorf("reading the kubeconfig: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return file, 0, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err != nil {
		minor = 0 // some clouds write more into it; images are then chosen as for an unknown version
	}
	var text bytes.Buffer
	for _, kind := range migratedKinds {
		if err := kind.list(ctx, c, &text); err != nil {
			return file, 0, err
		}
	}
	file.Text = text.Bytes()
	return file, minor, nil
}

// list adds the objects of one kind, in the newest version that is served. Those that a controller made are left out: they
// follow from what made them.
func (k liveKind) list(ctx context.Context, c client.Client, text *bytes.Buffer) error {
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
		options := []client.ListOption{client.Limit(pageSize)}
		if name != "" {
			options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		for {
			if err := c.List(ctx, list, append(options, client.Continue(list.GetContinue()))...); err != nil {
				return fmt.Errorf("listing objects of kind %s: %w", k.Kind, err)
			}
			for i := range list.Items {
				if err := addObject(text, &list.Items[i]); err != nil {
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
