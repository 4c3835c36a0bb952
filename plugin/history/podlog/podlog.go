// Package podlog reads the log of the controller from a cluster: that of all its replicas, and of the container before the
// last restart where the kubelet still has it.
//
//	pods with the label app.kubernetes.io/name=karpenter --> container controller --> pods/log
//
// Both this project's chart and upstream's give the pods that label and the container that name. Nothing is written to
// the cluster.
//
// The package must not know what the lines mean.
package podlog

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Label and Container are those of the controller's pods.
const (
	Label     = "app.kubernetes.io/name=karpenter"
	Container = "controller"
)

// MissingError says that no pod of the controller was found.
type MissingError struct{ Namespace string }

// Error implements error.
func (e *MissingError) Error() string {
	where := "in any namespace"
	if e.Namespace != "" {
		where = "in namespace " + e.Namespace
	}
	return fmt.Sprintf("no pod with the label %s and a container %s %s", Label, Container, where)
}

// Read calls each with the log of each container, the earlier one of a pod first. The namespace is empty for all. An error
// is that of the API server or of the callback. What a container writes after the call began is not waited for.
func Read(ctx context.Context, config *rest.Config, namespace string, each func(io.Reader) error) error {
	client, err := clientOf(config)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	var pods corev1.PodList
	err = client.Get().Namespace(namespace).Resource("pods").VersionedParams(&metav1.ListOptions{LabelSelector: Label},
		metav1.ParameterCodec).Do(ctx).Into(&pods)
	if err != nil {
		return fmt.Errorf("listing the controller's pods: %w", err)
	}
	found := false
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == Container }) {
			continue
		}
		found = true
		if err := readPod(ctx, client, pod, each); err != nil {
			return err
		}
	}
	if !found {
		return &MissingError{namespace}
	}
	return nil
}

func clientOf(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion = "/api", &corev1.SchemeGroupVersion
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(own)
}

// readPod reads the log of the container before the last restart, if there was one, and that of the running one.
func readPod(ctx context.Context, client *rest.RESTClient, pod *corev1.Pod, each func(io.Reader) error) error {
	restarted := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == Container && s.RestartCount > 0
	})
	for _, previous := range []bool{true, false} {
		if previous && !restarted {
			continue
		}
		request := client.Get().Namespace(pod.Namespace).Name(pod.Name).Resource("pods").SubResource("log").Param("container", Container)
		if previous {
			request.Param("previous", "true")
		}
		stream, err := request.Stream(ctx)
		if gone(err, previous) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the log of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		err = each(stream)
		if err := cmp.Or(err, stream.Close()); err != nil {
			return fmt.Errorf("reading the log of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// gone reports whether a log does not exist: that of a pod that was deleted just now, or of a container whose log the
// kubelet has removed.
func gone(err error, previous bool) bool {
	return apierrors.IsNotFound(err) || previous && apierrors.IsBadRequest(err)
}
