variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
  validation {
    condition     = can(regex("^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster_name))
    error_message = "An EKS cluster's name has 1 to 100 letters, digits, - and _, and begins with a letter or digit."
  }
}

variable "identity" {
  description = "How the controller's pods come by its role: pod-identity (EKS Pod Identity) or irsa (IAM roles for service accounts)."
  type        = string
  default     = "pod-identity"
  validation {
    condition     = contains(["pod-identity", "irsa"], var.identity)
    error_message = "identity is pod-identity or irsa."
  }
}

variable "oidc_provider" {
  description = "irsa only: the cluster's OIDC issuer without https://, such as oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^$|^[a-z0-9.-]+/id/[0-9A-Za-z]+$", var.oidc_provider))
    error_message = "oidc_provider is an issuer without https://, such as oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE."
  }
}

variable "namespace" {
  description = "Namespace of the controller."
  type        = string
  default     = "kube-system"
}

variable "service_account" {
  description = "Service account of the controller."
  type        = string
  default     = "karpenter"
}

variable "node_role_name" {
  description = "Name of the role for nodes; KarpenterNodeRole-CLUSTER if null. Cut to 64 characters."
  type        = string
  default     = null
}

variable "queue_name" {
  description = "Name of the queue of interruption notices; that of the cluster if null. Cut to 80 characters."
  type        = string
  default     = null
}

variable "node_access" {
  description = "Whether nodes are let into the cluster by an access entry (access-entry), or not (none) where the ConfigMap aws-auth does it."
  type        = string
  default     = "access-entry"
  validation {
    condition     = contains(["access-entry", "none"], var.node_access)
    error_message = "node_access is access-entry or none."
  }
}

variable "features" {
  description = "Features that are off by default and that the controller may use: docs/aws.md#permissions-by-feature."
  type        = set(string)
  default     = []
  validation {
    # generated: begin features
    condition     = length(setsubtract(var.features, ["ZonalShift", "Commitments"])) == 0
    error_message = "features are of: ZonalShift, Commitments."
    # generated: end
  }
}

variable "tags" {
  description = "Tags of everything that is made here. Nodes have the tags of their EC2NodeClass."
  type        = map(string)
  default     = {}
}
