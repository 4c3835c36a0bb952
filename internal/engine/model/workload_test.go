package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

func TestWorkload(t *testing.T) {
	created := time.Date(2026, 11, 28, 12, 0, 30, 0, time.UTC) // 29,931,120 minutes after 1970
	hash := map[string]string{"pod-template-hash": "5d4f8c"}
	for _, tt := range []struct {
		of     model.Owner
		labels map[string]string
		want   model.Owner
	}{
		{model.Owner{Kind: "ReplicaSet", Name: "web-5d4f8c", UID: "u"}, hash, model.Owner{Kind: "Deployment", Name: "web"}},
		{model.Owner{Kind: "ReplicaSet", Name: "web-5d4f8c"}, nil, model.Owner{Kind: "ReplicaSet", Name: "web-5d4f8c"}},
		{model.Owner{Kind: "ReplicaSet", Name: "web"}, hash, model.Owner{Kind: "ReplicaSet", Name: "web"}},
		{model.Owner{Kind: "StatefulSet", Name: "db-5d4f8c"}, hash, model.Owner{Kind: "StatefulSet", Name: "db-5d4f8c"}},
		{model.Owner{Kind: "Job", Name: "backup-29931120"}, nil, model.Owner{Kind: "CronJob", Name: "backup"}},
		{model.Owner{Kind: "Job", Name: "backup-29931000"}, nil, model.Owner{Kind: "CronJob", Name: "backup"}},
		{model.Owner{Kind: "Job", Name: "backup-29931121"}, nil, model.Owner{Kind: "Job", Name: "backup-29931121"}}, // later
		{model.Owner{Kind: "Job", Name: "import-20261128"}, nil, model.Owner{Kind: "Job", Name: "import-20261128"}}, // a date
		{model.Owner{Kind: "Job", Name: "29931120"}, nil, model.Owner{Kind: "Job", Name: "29931120"}},
		{model.Owner{Kind: "Job", Name: "import-x7k2p"}, nil, model.Owner{Kind: "Job", Name: "import-x7k2p"}},
		{model.Owner{}, hash, model.Owner{}},
	} {
		if diff := cmp.Diff(tt.want, tt.of.Workload(tt.labels, created)); diff != "" {
			t.Errorf("%v: %s", tt.of, diff)
		}
	}
}
