package convert

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scale is how many pods a workload asks for.
type Scale struct {
	// Asked is the number of pods that the workload creates without waiting for others to end. It is 0 for one that creates
	// none: suspended, finished, being deleted, or managed by another controller.
	Asked int
	// Generation is that of the workload.
	Generation int64
	// Failing says that the controller of the workload cannot create pods, or that pods of it have failed: when further
	// pods come is unknown.
	Failing bool
	// OneByOne says that a pod is created only when the one before is ready.
	OneByOne bool
	// Ordinals says that the pods are named by ordinals, which begin at First.
	Ordinals bool
	First    int
}

// ScaleOf returns the scale of a ReplicaSet, StatefulSet or Job. It returns false for other objects. The pods of a
// Deployment are those of its ReplicaSets, which are scaled as maxSurge and spec.paused allow.
func ScaleOf(obj any) (Scale, bool) {
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		return replicaSetScale(o), true
	case *appsv1.StatefulSet:
		return statefulSetScale(o), true
	case *batchv1.Job:
		return jobScale(o), true
	}
	return Scale{}, false
}

// replicas returns the number, which the API server sets to 1 where it is missing.
func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func replicaSetScale(o *appsv1.ReplicaSet) Scale {
	s := Scale{Generation: o.Generation}
	if o.DeletionTimestamp == nil {
		s.Asked = replicas(o.Spec.Replicas)
	}
	for _, c := range o.Status.Conditions {
		s.Failing = s.Failing || c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
	}
	return s
}

func statefulSetScale(o *appsv1.StatefulSet) Scale {
	s := Scale{Generation: o.Generation, Ordinals: true, OneByOne: o.Spec.PodManagementPolicy != appsv1.ParallelPodManagement}
	if o.DeletionTimestamp == nil {
		s.Asked = replicas(o.Spec.Replicas)
	}
	if o.Spec.Ordinals != nil {
		s.First = int(o.Spec.Ordinals.Start)
	}
	return s
}

// jobScale counts the first pods of a Job only: each later one takes the place of a pod that has ended. Failed pods are
// replaced after a pause (https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy).
func jobScale(o *batchv1.Job) Scale {
	s := Scale{Generation: o.Generation, Failing: o.Status.Failed > 0}
	by := o.Spec.ManagedBy
	if o.DeletionTimestamp != nil || o.Spec.Suspend != nil && *o.Spec.Suspend || by != nil && *by != batchv1.JobControllerName {
		return s
	}
	for _, c := range o.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type != batchv1.JobSuspended {
			return s // it has ended, or is about to
		}
	}
	s.Asked = replicas(o.Spec.Parallelism)
	switch {
	case o.Spec.Completions != nil:
		s.Asked = min(s.Asked, int(*o.Spec.Completions))
	case o.Status.Succeeded > 0: // a work queue that is nearly empty gets no further pods
		s.Asked = 0
	}
	return s
}

// trimScale keeps the fields that ScaleOf and SelectorOf read, and the owners, by which the plugin finds the pods of a
// Deployment or CronJob. It returns false for other objects.
func trimScale(obj metav1.Object) bool {
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		o.Spec = appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector}
		var failures []appsv1.ReplicaSetCondition
		for _, c := range o.Status.Conditions {
			failures = append(failures, appsv1.ReplicaSetCondition{Type: c.Type, Status: c.Status})
		}
		o.Status = appsv1.ReplicaSetStatus{Conditions: failures}
	case *appsv1.StatefulSet:
		o.Spec = appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Ordinals: o.Spec.Ordinals,
			PodManagementPolicy: o.Spec.PodManagementPolicy}
		o.Status = appsv1.StatefulSetStatus{}
	case *batchv1.Job:
		o.Spec = batchv1.JobSpec{Parallelism: o.Spec.Parallelism, Completions: o.Spec.Completions, Suspend: o.Spec.Suspend,
			ManagedBy: o.Spec.ManagedBy}
		var conditions []batchv1.JobCondition
		for _, c := range o.Status.Conditions {
			conditions = append(conditions, batchv1.JobCondition{Type: c.Type, Status: c.Status})
		}
		o.Status = batchv1.JobStatus{Conditions: conditions, Succeeded: o.Status.Succeeded, Failed: o.Status.Failed}
	default:
		return false
	}
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	return true
}
