"""`INSTALLED_APPS = ["penstock.django"]` brings `manage.py penstock`."""

from django.apps import AppConfig


class PenstockConfig(AppConfig):
    """The Django application; it has no models."""

    name = "penstock.django"
    label = "penstock"
    verbose_name = "Penstock"
