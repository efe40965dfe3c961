use super::check;

#[test]
fn french() {
    check(&[
        ("Non, l'autre fichier.", "correction denial"),
        ("C'est faux, le port est 8081", "correction"),
        ("Je voulais dire le deuxième paragraphe", "correction"),
        ("Utilise plutôt une liste", "correction"),
        (
            "des tabulations au lieu des espaces, s'il te plaît",
            "correction",
        ),
        ("ça ne marche toujours pas", "correction"),
        ("Ne touche pas à la configuration", "prohibition correction"),
        ("N'utilise jamais de variables globales", "prohibition"),
        ("Surtout pas d'émojis", "prohibition"),
        ("je ne veux pas de base de données", "prohibition"),
        ("Il ne faut pas modifier l'API publique", "prohibition"),
        ("Évite les dépendances", "prohibition"),
        ("Désormais, réponds en français", "preference"),
        ("Je préfère les réponses courtes", "preference"),
        ("Assure-toi que les tests passent", "preference"),
        ("J'habite à Lyon", "fact"),
        ("Nous utilisons Postgres 15", "fact"),
        ("Ma fille est allergique aux noix", "fact"),
        ("La réunion a été reportée au mardi", "change"),
        ("nous n'utilisons plus Jenkins", "change"),
        ("Peux-tu ajouter un test ?", "request"),
        ("Écris une fonction qui trie les nombres", "request"),
        ("Comment fonctionne le cache ?", "question !request"),
        ("Passons à la page de paiement", "goal"),
        ("oui, vas-y", "approval"),
        ("Merci beaucoup !", "talk !correction"),
        ("pas de problème", "!prohibition !correction"),
        (
            "Ajoute un test pour le cas vide",
            "request !correction !prohibition",
        ),
    ]);
}

#[test]
fn spanish() {
    check(&[
        ("No, el otro archivo.", "correction denial"),
        ("Eso está mal, el puerto es 8081", "correction"),
        ("Quise decir el segundo párrafo", "correction"),
        ("Mejor usa una lista", "correction"),
        (
            "usa tabuladores en lugar de espacios",
            "correction preference",
        ),
        ("sigue sin funcionar", "correction"),
        ("No toques la configuración", "prohibition correction"),
        ("Nunca borres datos sin preguntar", "prohibition"),
        ("por favor no uses emojis", "prohibition"),
        ("No quiero una base de datos", "prohibition"),
        ("Evita las dependencias nuevas", "prohibition"),
        ("no debes cambiar la API pública", "prohibition"),
        ("A partir de ahora responde en español", "preference"),
        ("Prefiero respuestas cortas", "preference"),
        ("Asegúrate de que las pruebas pasen", "preference"),
        ("Vivo en Sevilla", "fact"),
        ("Usamos Postgres 15", "fact"),
        ("Mi hija es alérgica a las nueces", "fact"),
        ("La reunión se pospuso al martes", "change"),
        ("ya no usamos Jenkins", "change"),
        ("¿Puedes añadir una prueba?", "request"),
        ("Escribe una función que ordene números", "request"),
        ("¿Cómo funciona la caché?", "question !request"),
        ("Pasemos a la página de pagos", "goal"),
        ("sí, adelante", "approval"),
        ("¡Muchas gracias!", "talk !correction"),
        ("no hay problema", "!prohibition !correction"),
        (
            "Añade una prueba para el caso vacío",
            "request !correction !prohibition",
        ),
    ]);
}
