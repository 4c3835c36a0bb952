# What karpenter needs of an AWS account, per cluster: a role for nodes, a role for the controller, and a queue of interruption
# notices. docs/aws.md says how to use it; ../cloudformation.yaml makes the same.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.83" # pod identity associations, access entries, tags of both
    }
  }
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  # A role's name has 64 characters at most, a policy's 128, a rule's 64, a queue's 80. A longer one ends with a part of
  # the hash of the cluster's name.
  wanted = {
    node_role       = { name = coalesce(var.node_role_name, "KarpenterNodeRole-${var.cluster_name}"), most = 64 }
    controller_role = { name = "KarpenterController-${var.cluster_name}", most = 64 }
    queue           = { name = coalesce(var.queue_name, var.cluster_name), most = 80 }
  }
  hash = substr(sha256(var.cluster_name), 0, 8)
  names = { for key, w in local.wanted :
    key => length(w.name) <= w.most ? w.name : "${substr(w.name, 0, w.most - 9)}-${local.hash}"
  }
}
