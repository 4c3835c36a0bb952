package model

import (
	"strconv"
	"strings"
	"time"
)

// Workload returns what a user applies for the pods of a controller: the Deployment of a ReplicaSet, whose name ends in
// the hash of the pods' template (label pod-template-hash); the CronJob of a Job, whose name ends in the minute for which
// it was scheduled; otherwise the controller itself, without its UID. labels and created are those of a pod.
//
// Both names are those that Kubernetes' own controllers give
// (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label,
// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/).
func (o Owner) Workload(labels map[string]string, created time.Time) Owner {
	o.UID = ""
	switch o.Kind {
	case "ReplicaSet":
		if hash := labels["pod-template-hash"]; hash != "" {
			if name, has := strings.CutSuffix(o.Name, "-"+hash); has {
				return Owner{Kind: "Deployment", Name: name}
			}
		}
	case "Job":
		if name, minute, has := cutLast(o.Name, '-'); has && scheduledFor(minute, created) {
			return Owner{Kind: "CronJob", Name: name}
		}
	}
	return o
}

func cutLast(text string, at byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(text, at); i > 0 {
		return text[:i], text[i+1:], true
	}
	return "", "", false
}

// latestRun is how long after the minute for which its Job was scheduled a pod may be created: what ends in another
// number, such as a date, is the name of a Job.
const latestRun = 365 * 24 * time.Hour

func scheduledFor(minute string, created time.Time) bool {
	since1970, err := strconv.ParseUint(minute, 10, 32)
	if err != nil {
		return false
	}
	wait := created.Sub(time.Unix(int64(since1970)*60, 0))
	return wait >= 0 && wait < latestRun
}
