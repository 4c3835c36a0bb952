package aws

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// KubernetesOf completes the settings by the facts about the cluster that its API server provides.
func KubernetesOf(asked discovery.Kubernetes, config *rest.Config, reader client.Reader) (discovery.Kubernetes, error) {
	if asked.CABundle == "" {
		bundle := config.CAData
		if len(bundle) == 0 && config.CAFile != "" {
			var err error
			if bundle, err = os.ReadFile(config.CAFile); err != nil {
				return asked, fmt.Errorf("reading the certificate authority for nodes: %w", err)
			}
		}
		asked.CABundle = base64.StdEncoding.EncodeToString(bundle)
	}
	var err error
	if asked.Version, err = serverVersion(config); err != nil {
		return asked, err
	}
	asked.DNS = func(ctx context.Context) (string, error) {
		service := &corev1.Service{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, service)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return "", nil // the image decides
		}
		return service.Spec.ClusterIP, err
	}
	asked.CNI = func(ctx context.Context) (discovery.CNI, error) { return cniOf(ctx, reader) }
	return asked, nil
}

// cniOf reads the settings of the VPC CNI from its DaemonSet. Without one, it is Absent.
func cniOf(ctx context.Context, reader client.Reader) (discovery.CNI, error) {
	var found appsv1.DaemonSetList
	err := reader.List(ctx, &found, client.InNamespace("kube-system"), client.MatchingFields{"metadata.name": "aws-node"})
	cni := discovery.CNI{Absent: err == nil}
	for i := range found.Items {
		if found.Items[i].Name != "aws-node" {
			continue
		}
		cni.Absent = false
		for _, container := range found.Items[i].Spec.Template.Spec.Containers {
			for _, variable := range container.Env {
				on := container.Name == "aws-node" && strings.EqualFold(variable.Value, "true")
				switch variable.Name {
				case "ENABLE_PREFIX_DELEGATION":
					cni.PrefixDelegation = cni.PrefixDelegation || on
				case "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":
					cni.CustomNetworking = cni.CustomNetworking || on
				}
			}
		}
	}
	return cni, err
}

// serverVersion returns a function that queries the API server's version, such as v1.36.1.
func serverVersion(config *rest.Config) (func(context.Context) (string, error), error) {
	client, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("setting up the request for the Kubernetes version: %w", err)
	}
	return func(context.Context) (string, error) {
		server, err := client.ServerVersion()
		if err != nil {
			return "", err
		}
		return server.GitVersion, nil
	}, nil
}
