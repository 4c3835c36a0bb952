package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// sandboxService is a Service of a sandbox, in kube-system, that points to this machine. Through it the API server
// reaches the conversion webhook of a controller that runs beside the sandbox (--karpenter-service).
const sandboxService = "karpenter"

// leadHere creates the Service. An existing one is not changed.
func leadHere(ctx context.Context, config *rest.Config) error {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: sandboxService},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	_, err = api.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the Service %s/%s, by which the API server finds a controller of this machine: %w", service.Namespace, service.Name, err)
	}
	return nil
}

// leadHereBy creates the Service in the cluster of a kubeconfig.
func leadHereBy(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the sandbox's kubeconfig: %w", err)
	}
	return leadHere(ctx, config)
}
