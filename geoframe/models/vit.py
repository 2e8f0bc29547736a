"""Lightweight vision transformers of *Neural Expansion* (A.2), built with timm."""

from __future__ import annotations

from timm.models import VisionTransformer

from geoframe.errors import BadInput


def vit(
    channels: int = 1,
    size: int = 28,
    patch: int = 7,
    dim: int = 64,
    depth: int = 6,
    heads: int = 4,
    mlp_ratio: float = 4.0,
    classes: int = 10,
) -> VisionTransformer:
    """Vision transformer of timm: patches of 7×7 and 64 dimensions for MNIST as in A.2; 305,034 parameters.

    The paper gives patch size and dimension only: 7 and 64 for MNIST, 8 and 192 for CIFAR-10 (2,712,010 parameters).
    The rest is ours: 6 blocks, 4 heads (3 for 192, as in DeiT-Ti), hidden layers of 4 × `dim`, a class token, learnt
    positions, no dropout. Φ is the class token after the last normalisation.

    Parameters
    ----------
    channels, size : int
        Of the square images: 1 and 28 for MNIST, 3 and 32 for CIFAR-10.
    patch : int
        Side of a patch, a divisor of `size`.
    dim, depth, heads : int
        Dimensions of a token, a multiple of `heads`; blocks; attention heads.
    mlp_ratio : float
        Hidden units of a block's two-layer network, as a multiple of `dim`.
    classes : int
        Logits.

    Raises
    ------
    BadInput
        Where patches don't tile the image, or heads don't divide the dimension.
    """
    if size % patch:
        raise BadInput(f"vit: patches of {patch}×{patch} don't tile a {size}×{size} image: choose a divisor of {size}")
    if dim % heads:
        raise BadInput(f"vit: {heads} heads don't divide dim={dim}: choose a multiple")
    return VisionTransformer(
        img_size=size,
        patch_size=patch,
        in_chans=channels,
        num_classes=classes,
        global_pool="token",
        embed_dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_ratio=mlp_ratio,
        qkv_bias=True,
        class_token=True,
    )
