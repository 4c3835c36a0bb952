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

// label and container are those of the controller's pods.
const (
	label     = "app.kubernetes.io/name=karpenter"
	container = "controller"
)

// missingError says that no pod of the controller was found.
type missingError struct{ namespace string }

// Error implements error.
func (e *missingError) Error() string {
	where := "in any namespace"
	if e.namespace != "" {
		where = "in namespace " + e.namespace
	}
	return fmt.Sprintf("no pod with the label %s and a container %s %s", label, container, where)
}

// Read calls each with the log of each container, the earlier one of a pod first. The namespace is empty for all. What a
// container writes after the call began is not waited for.
//
// A log that cannot be read, or only a part of it, is a remark, and the others are read. The error is that of the list of
// pods, or that no log was read, with the first cause.
func Read(ctx context.Context, config *rest.Config, namespace string, each func(io.Reader) error) (remarks []error, err error) {
	client, err := clientOf(config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	var pods corev1.PodList
	err = client.Get().Namespace(namespace).Resource("pods").VersionedParams(&metav1.ListOptions{LabelSelector: label},
		metav1.ParameterCodec).Do(ctx).Into(&pods)
	if err != nil {
		return nil, fmt.Errorf("listing the controller's pods: %w", err)
	}
	r := reader{client: client, each: each, none: &missingError{namespace}}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container }) {
			r.pod(ctx, pod)
		}
	}
	if r.opened == 0 {
		return nil, append(r.failed, r.none)[0]
	}
	return r.failed, ctx.Err()
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

// reader reads the logs of pods.
type reader struct {
	client *rest.RESTClient
	each   func(io.Reader) error
	// opened counts the logs that there are, failed has what went wrong, and none why there is no log where nothing did.
	opened int
	failed []error
	none   error
}

// pod reads the log of the container before the last restart, if there was one, and that of the running one.
func (r *reader) pod(ctx context.Context, pod *corev1.Pod) {
	restarted := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.RestartCount > 0
	})
	for _, previous := range []bool{true, false} {
		if previous && !restarted {
			continue
		}
		err := r.log(ctx, pod, previous)
		if err != nil {
			err = fmt.Errorf("reading the log of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		switch {
		case absent(err):
			r.none = err
		case err != nil:
			r.failed = append(r.failed, err)
		}
	}
}

func (r *reader) log(ctx context.Context, pod *corev1.Pod, previous bool) error {
	request := r.client.Get().Namespace(pod.Namespace).Name(pod.Name).Resource("pods").SubResource("log").Param("container", container)
	if previous {
		request.Param("previous", "true")
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	r.opened++
	err = r.each(stream)
	return cmp.Or(err, stream.Close())
}

// absent reports whether there is no log: that of a pod that was deleted just now, of a container that waits to start, or
// of an earlier one whose log the kubelet has removed.
func absent(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) }
